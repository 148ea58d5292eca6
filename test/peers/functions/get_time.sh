#!/bin/sh
echo "$FN_SESSION_ID $FN_CALL_ID" >> "$LOG"
echo "the clock has stopped" >&2
exit 1
