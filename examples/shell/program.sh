# What executor.sh does with a call that is to run: a program whose input, variables and exit statuses are those of `exec` in docs/functions-file.md.
run() { # the arguments are the very bytes between ,"arguments": and the last brace of the payload
	local began child timer text code ms arguments=${payload#*,\"arguments\":}
	began=$(now) ms=$((deadline - $(now) < timeout ? deadline - $(now) : timeout))
	TZ=UTC printf -v FN_DEADLINE '%(%FT%TZ)T' $(((began + ms) / 1000))
	export FN_SESSION_ID FN_TURN_ID FN_CALL_ID FN_FUNCTION FN_ATTEMPT FN_DEADLINE IDEMPOTENCY_KEY TRACEPARENT
	[[ $uncertain != 1 ]] || export FN_UNCERTAIN=1
	"$dir/$token" < <(printf %s "${arguments%\}}") >"$held/out" 2>"$held/err" &
	child=$!
	sleep "$(seconds $ms)" &
	timer=$!
	wait -n "$child" "$timer"
	code=$? text=$(tail -c 4096 "$held/err")
	(($(now) - began < ms)) || code=late
	{ kill -PIPE "$timer" && kill -KILL "$child"; } 2>/dev/null
	case $code in
	0) report success '{success: true, $output}' --rawfile output "$held/out" ;;
	65) fail invalid_arguments "invalid arguments: ${text:-exited with status 65}" ;;
	75) report retry '($text | capture("^(?<reason>.*?)\\s*Retry-After: *(?<s>[0-9]+)$"; "s") // {reason: $text, s: "0"}) as $c |
		{retry: {reason: $c.reason, after_ms: ($c.s | tonumber * 1000)}}' --arg text "$text" ;;
	late) if ((ms < timeout)); then fail deadline "timed out after $(seconds $ms)s, at the call's deadline"; else fail timeout "timed out after $(seconds $ms)s"; fi ;;
	129 | 1[3-9]? | 2??) fail panic 'function crashed' ;;
	*) fail '' "${text:-exited with status $code}" ;;
	esac
}
