#!/bin/sh
# The effect: a line in the ledger, under the call's idempotency key. A real function
# would give that key to the bank.
cents=$(sed -n 's/.*"cents" *: *\([0-9]*\).*/\1/p')
echo "$IDEMPOTENCY_KEY $cents" >>"$LEDGER"
sleep "$SLOW" # an executor that is killed here has charged and told nobody
printf '{"charged":%s,"receipt":"%s"}' "$cents" "$IDEMPOTENCY_KEY"
