#!/usr/bin/env bash
# The conformance executor of executor.sh, level core (protocol/conformance.md): started by the suite it serves the functions, started by
# executor.sh it is each of them.
set -eu
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)

if [[ -z ${FN_FUNCTION-} ]]; then
	dir=$(mktemp -d "$(dirname "$CONFORMANCE_LOG")/functions-XXXXXX") # the suite removes it
	export TMPDIR=$dir
	define() { # NAME EFFECTS PROPERTIES POLICY
		ln -s "$here/conformance.sh" "$dir/$1"
		jq -n --arg name "$1" --arg effects "$2" --argjson types "${3-{\}}" --argjson policy "${4-{\}}" '{$name, description: "The function \($name)",
			parameters: {type: "object", properties: ($types | map_values({type: .}))}, policy: ({$effects} + $policy)}' >"$dir/$1.json"
	}
	define echo none
	define fail none '{"text": "string"}'
	define retry idempotent '{"after_ms": "integer", "ok_at": "integer"}' '{"attempts": 5}'
	define sleep idempotent '{"ms": "integer"}'
	define block idempotent '{"ms": "integer"}'
	define key idempotent
	define pay_blind side_effects '{"ms": "integer"}'
	export CALLFAN_NATS_INBOX_PREFIX=${CONFORMANCE_INBOX_PREFIX:-_INBOX}
	exec "$here/executor.sh" "$CONFORMANCE_POOL" "$dir"
fi

event() { # by one write; the ids of the core tests have nothing that JSON escapes
	printf '{"event":"%s","function":"%s","call_id":"%s","attempt":%d,"idempotency_key":"%s","at_ms":%d,"pid":%d}\n' "$1" "$FN_FUNCTION" \
		"$FN_CALL_ID" "$FN_ATTEMPT" "$IDEMPOTENCY_KEY" $((${EPOCHREALTIME/[.,]/} / 1000)) $$ >>"$CONFORMANCE_LOG"
}
argument() { jq -rj ".$1 // 0" <<<"$arguments"; }
wait_for() { sleep "$(jq -r '(.ms // 0) / 1000' <<<"$arguments")"; }

event start
arguments=$(cat)
case $FN_FUNCTION in
echo) printf %s "$arguments" ;;
fail) argument text >&2 && event end && exit 1 ;;
retry)
	if ((FN_ATTEMPT < $(argument ok_at))); then
		printf 'not yet\nRetry-After: %d\n' $((($(argument after_ms) + 999) / 1000)) >&2
		event end && exit 75
	fi
	printf ok
	;;
sleep) wait_for && printf slept ;;
block)
	end=$((${EPOCHREALTIME/[.,]/} / 1000 + $(argument ms)))
	while ((${EPOCHREALTIME/[.,]/} / 1000 < end)); do :; done
	printf blocked
	;;
key)
	jq -njc '{idempotency_key: env.IDEMPOTENCY_KEY, attempt: (env.FN_ATTEMPT | tonumber), session_id: env.FN_SESSION_ID, turn_id: env.FN_TURN_ID,
		call_id: env.FN_CALL_ID, function: env.FN_FUNCTION}'
	;;
pay_blind) event effect && wait_for && printf paid ;;
esac
event end
