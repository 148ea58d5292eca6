#!/usr/bin/env bash
# A core executor in 99 lines, to show how small the protocol is (docs/protocol.md). Needs bash 5, jq, coreutils and the nats CLI.
#   NATS_URL=nats://127.0.0.1:4222 ./executor.sh POOL DIRECTORY
# A function is two files in DIRECTORY: TOKEN.json, its definition, and TOKEN, a program; program.sh runs it.
# A SIGTERM to the whole process group ends `nats subscribe`, too: what it had not handed over waits for its lease.
set -u && pool=$1 dir=$2 prefix=${CALLFAN_PREFIX:-fn} slots=${EXECUTOR_CONCURRENCY:-4} stop_ms=${EXECUTOR_STOP_TIMEOUT_MS:-25000}
inbox=${CALLFAN_NATS_INBOX_PREFIX:-_INBOX} api=${CALLFAN_NATS_API_PREFIX:-\$JS.API} id=$(uname -n)-$$
tmp=$(mktemp -d) replies=$inbox.shell.$$.$RANDOM$RANDOM names=$(jq -sc 'map(.name)' "$dir"/*.json) || exit 2
declare -A name_of effects_of choice_of && eval "$(jq -r '(input_filename | split("/")[-1] | rtrimstr(".json")) as $token | (.policy.effects // "side_effects") as $effects |
	(.policy.on_uncertain // {none: "rerun", idempotent: "rerun"}[$effects] // "fail") as $choice |
	@sh "name_of[\($token)]=\(.name) effects_of[\($token)]=\($effects) choice_of[\($token)]=\($choice)"' "$dir"/*.json)"
. "$(dirname "$0")/program.sh"

log() { echo "$(date -u +%FT%TZ) $*" >&2; }
now() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); } # milliseconds
seconds() { printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)); }
pause() { sleep "$(seconds "$wait")" && wait=$((wait < 2500 ? wait * 2 : 5000)); } # from 100 ms up to 5 s
ask() { nats --inbox-prefix "$inbox" --timeout "$1" request --raw --no-templates "${@:2}" 2> >(grep -v 'Reading payload' >&2); } # reads standard input
tell() { nats publish --quiet --no-templates "$@"; }
subscribe() { exec 3< <(exec nats subscribe "$replies" --dump=-) && subscriber=$!; } # each message as JSON with a NUL behind it
register() { # every function, for ever; the last answer has the binding
	local file answer wait=100 request='{protocol: 1, $pool, function: ., functions: $names, executor: {$id, language: "shell", version: "1"}}'
	for file in "$dir"/*.json; do
		until answer=$(jq -c --arg pool "$pool" --arg id "$id" --argjson names "$names" "$request" "$file" | ask 10s "$prefix.register.$(basename "$file" .json)") &&
			[[ -n $answer ]] && jq -e .binding <<<"$answer" >"$tmp/binding"; do # jq takes nothing for a success
			case $(jq -r '.error.code // ""' <<<"$answer" 2>/dev/null) in '' | unavailable) pause ;; *) jq -r .error.message <<<"$answer" >&2 && return 1 ;; esac
		done
	done
}
read_call='def h(n): .Header[n][0] // ""; def whole(n): h(n) | test("^[1-9][0-9]{0,17}$"); def maybe(n): h(n) == "" or whole(n);
	(.Data | @base64d | fromjson) as $c | (.Subject | split(".")[-1]) as $token | (.Reply | split(".")) as $ack | if h("Fn-Protocol") == "1"
		and ([$c | .session_id, .turn_id, .call_id, .name | type == "string" and . != ""] | all) and whole("Fn-Attempt") and whole("Fn-Handover")
		and maybe("Fn-Timeout-Ms") and maybe("Fn-Deadline") and (h("Fn-Nonce") | test("^[A-Za-z0-9_-]{1,128}$"))
		and (h("Fn-Result-Subject") | test("^\($prefix)\\.result\\.\($token)\\.p[0-9]{2,}$")) and (h("Fn-On-Uncertain") | test("^(|rerun|verify|fail|park)$"))
	then @sh "token=\($token) reply=\(.Reply) deliveries=\($ack[if $ack | length > 10 then 6 else 4 end]) nonce=\(h("Fn-Nonce")) handover=\(h("Fn-Handover"))
		result=\(h("Fn-Result-Subject")) uncertain=\(h("Fn-Uncertain")) choice=\(h("Fn-On-Uncertain")) timeout=\(h("Fn-Timeout-Ms")) deadline=\(h("Fn-Deadline"))
		ids=\(($c | {session_id, turn_id, call_id}) + {nonce: h("Fn-Nonce"), executor: $id} | tojson) FN_SESSION_ID=\($c.session_id) FN_TURN_ID=\($c.turn_id)
		FN_CALL_ID=\($c.call_id) FN_FUNCTION=\($c.name) FN_ATTEMPT=\(h("Fn-Attempt")) IDEMPOTENCY_KEY=\(h("Fn-Idempotency-Key")) TRACEPARENT=\(h("traceparent"))
		payload=\(.Data | @base64d)" else error("no call") end'
unknown='the outcome of this call is unknown: an earlier run was interrupted and may or may not have taken effect; do not assume either'
crashed='function crashed or its executors were lost: it was handed out several times and never finished'
handle() { # one delivery, in a process of its own; what is neither reported nor acked is left to its lease
	local call && trap '' TERM INT
	call=$(jq -r --arg prefix "$prefix" --arg id "$id" "$read_call" <<<"$1" 2>/dev/null) && eval "$call" &&
		[[ ${name_of[$token]-$FN_FUNCTION} == "$FN_FUNCTION" ]] || { log "a message that is no call is left" && return; }
	timeout=${timeout:-30000} deadline=${deadline:-$(($(now) + 60000 + ${timeout:-30000}))} held=$tmp/$nonce.$handover
	mkdir "$held" 2>/dev/null || return # this process has the same hand-over already
	while sleep "$beat" && [[ -e $held/outcome || $(now) -lt $deadline ]]; do tell "$reply" +WPI; done &
	beating=$! && decide
	kill -PIPE "$beating" 2>/dev/null # bash does not print that signal
	rm -rf "$held"
}
decide() {
	local answer standing=none wait=100 && ((deliveries == 1)) || uncertain=1
	[[ -v name_of[$token] ]] || { [[ $uncertain == 1 ]] || { sleep 0.25 && report released '{released: true}'; }; return; } # it is not served here
	if [[ $uncertain == 1 ]]; then # it may have run: how does it stand?
		until answer=$(ask 2s "$prefix.outcome.$token" "${ids%\}},\"handover\":$handover}") && [[ $answer != *'"error":'* &&
			$answer =~ '"standing":'\ *\"(pending|unknown|answered|cancelled)\" ]] && standing=${BASH_REMATCH[1]}; do
			[[ -e $tmp/stop || $(now) -ge $deadline ]] && break || pause
		done
		case $standing,$((deliveries > 3)),${effects_of[$token]},${choice:-${choice_of[$token]}} in # 1: three crashes
		answered,* | cancelled,*) tell "$reply" +ACK; return ;;
		*,1,none,*) fail crashed "$crashed"; return ;;
		*,park | [!n]*,0,*,verify) report uncertain '{uncertain: {reason: "an earlier run may have taken effect"}}'; return ;;
		*,1,*) fail crashed "$crashed; $unknown"; return ;;
		*,fail | *,verify) fail unknown_outcome "$unknown"; return ;;
		esac
	fi
	if [[ -e $tmp/stop ]]; then report released '{released: true}'
	elif (($(now) >= deadline)); then fail deadline "the call's deadline passed before the function was started"
	else run; fi
}
fail() { report failure '{success: false, $error} + if $cause == "" then {} else {$cause} end' --arg cause "$1" --arg error "$2"; }
report() { # the kind and the JSON of an outcome: store it, and only then ack
	local answer until=$(($(now) + 60000)) wait=100 message_id=$nonce.$1$([[ $1 != released ]] || echo ".$handover")
	jq -c "${@:3}" ". + ($2)" <<<"$ids" >"$held/outcome"
	until answer=$(ask 5s "$result" -H "Nats-Msg-Id: $message_id" -H "Fn-Protocol: 1" <"$held/outcome") && [[ $answer == *'"seq":'* && $answer != *'"error":'* ]]; do
		(($(now) < until || $(now) < deadline)) && pause || { log "a call is left whose outcome cannot be stored" && return; }
	done
	tell "$reply" +ACK || tell "$reply" +ACK
}
trap 'kill -KILL "${subscriber-}" "${registrar-}" "${running[@]}" 2>/dev/null; rm -rf "$tmp"' EXIT && trap 'exit 0' TERM INT && subscribe && register || exit 1
eval "$(jq -r '@sh "calls=\(.calls_stream).\(.consumer) beat=\(.ack_wait_ms / 3000) refresh=\(.refresh_ms / 1000 | ceil)"' "$tmp/binding")" && log "executor serves $names"
trap 'touch "$tmp/stop"' TERM INT && asked=0 heard=$EPOCHSECONDS next=$((EPOCHSECONDS + ${refresh/#0/30})) part='' end='' registrar=''
while running=($(jobs -rp)) && free=$((slots - ${#running[@]} - asked)); do
	if [[ -e $tmp/stop ]]; then ((${#running[@]} > 0 && EPOCHSECONDS <= ${end:=$((EPOCHSECONDS + stop_ms / 1000 + 1))})) || break
	elif ((free > 0)) && heard=$EPOCHSECONDS asked=$((asked + free)); then # one call for each free slot
		tell "$api.CONSUMER.MSG.NEXT.$calls" "{\"batch\":$free,\"expires\":10000000000,\"idle_heartbeat\":1000000000}" --reply "$replies" & disown; fi
	((EPOCHSECONDS < next)) || kill -0 "$registrar" 2>/dev/null || { register & disown && registrar=$! next=$((EPOCHSECONDS + ${refresh/#0/30})); }
	if IFS= read -r -d '' -t 0.2 -u 3 message; then
		message=$part$message part='' heard=$EPOCHSECONDS status=''
		[[ $message != *'"Status":['* ]] || status=$(jq -r 'select(.Data // "" == "").Header | "\(.Status[0]) \(.Description[0]) \(.["Nats-Pending-Messages"][0] // 0)"' <<<"$message")
		if [[ -z $status ]]; then handle "$message" & asked=$((asked > 0 ? asked - 1 : 0))
		elif [[ $status == 40[48]* || $status == *Batch* || $status == *MaxBytes* ]]; then asked=$((asked - ${status##* })) # a pull has ended
		elif [[ $status != 100* ]]; then asked=0 next=$((EPOCHSECONDS + 1)) && sleep 0.2; fi
	elif (($? <= 128)); then asked=0 part='' && sleep 0.5 && subscribe
	else part+=$message && ((asked == 0 || EPOCHSECONDS - heard <= 3)) || asked=0 next=$EPOCHSECONDS; fi # the pulls were lost
done
exit 0
