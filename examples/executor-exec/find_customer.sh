#!/bin/sh
# The arguments come as JSON on standard input; a real function would read them with
# a JSON parser such as jq.
id=$(sed -n 's/.*"customer_id" *: *"\([0-9]*\)".*/\1/p')
if [ ! -r "$CUSTOMERS" ]; then
  echo "the list of customers is away" >&2
  exit 75 # a technical failure: the call may be tried again
fi
if line=$(grep "^$id " "$CUSTOMERS"); then
  printf '{"found":true,"customer":{"name":"%s"}}' "${line#* }"
else
  echo "customer $id not found" >&2 # the model reads this text
  exit 1
fi
