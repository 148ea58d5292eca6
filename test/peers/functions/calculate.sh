#!/bin/sh
echo "$FN_SESSION_ID $FN_CALL_ID" >> "$LOG"
arguments=$(cat)
number() { printf %s "$arguments" | sed "s/.*\"$1\": *\([0-9]*\).*/\1/"; }
echo "{\"result\": $(($(number a) - $(number b)))}"
