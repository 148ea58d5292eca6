#!/bin/sh
# Was this call charged by an earlier run? It has no effect itself.
#   exit status 0 and the output of the function: it was
#   exit status 244: it was not, run it now
#   anything else: nobody can tell
if [ ! -r "$LEDGER" ]; then
  echo "the ledger is away" >&2
  exit 1
fi
line=$(grep "^$IDEMPOTENCY_KEY " "$LEDGER")
case $? in
0) printf '{"charged":%s,"receipt":"%s"}' "${line#* }" "$IDEMPOTENCY_KEY" ;;
1) exit 244 ;;
*) exit 1 ;;
esac
