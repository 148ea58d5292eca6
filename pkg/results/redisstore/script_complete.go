package redisstore

// completeScript saves the first result of each of a turn's calls.
//
//	KEYS[1]  the turn
//	KEYS[2]  the turn's results
//	KEYS[3]  the session's turns
//	ARGV[1]  fence
//	ARGV[2]  ActiveTTL, ms
//	ARGV[3]  Retention, ms (not used)
//	ARGV[4]  turn id
//	ARGV[5…] per call: call id, function, state letter S or F, outcome id,
//	         attempt, "1" to adopt an unknown call, result, note
//
// Returns "FENCED" and writes nothing, or {now, then per call: verdict, the entry's
// first line, result or nil}.
// The verdict is S (saved, now or earlier), X (superseded) or - (unknown).
var completeScript = newScript(luaNow + luaLater + luaFence + luaKeep + luaStale + luaMeta + luaHistory + `
local reply, adopted, saved = {now}, 0, false
for i = 5, #ARGV, 8 do
  local field = ':' .. ARGV[i]
  local meta = redis.call('HGET', KEYS[1], field)
  local verdict, body, history = 'S', false, ''
  local state, attempt, handover, claimed, length, rest
  if meta then
    meta, history = split(meta)
    state, attempt, handover, claimed, length, rest = parse(meta)
  elseif ARGV[i + 5] == '1' then
    state, attempt, handover, claimed, length, rest = 'q', ARGV[i + 4], '0', now, #ARGV[i + 1], ARGV[i + 1]
    adopted = adopted + 1
  end
  if not state then
    verdict, meta = '-', ''
  elseif isopen(state) then
    local after = since(claimed)
    meta = format(ARGV[i + 2], attempt, handover, claimed, after, length, string.sub(rest, 1, length) .. ARGV[i + 3])
    history = cut(history .. step(ARGV[i + 2], after, attempt, handover, ARGV[i + 7]))
    redis.call('HSET', KEYS[1], field, meta .. history)
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 6])
    saved = true
  elseif ARGV[i + 3] == '' or string.sub(rest, length + 1) ~= ARGV[i + 3] then
    verdict, body = 'X', redis.call('HGET', KEYS[2], ARGV[i])
  end
  reply[#reply + 1] = verdict
  reply[#reply + 1] = meta
  reply[#reply + 1] = body
end
if adopted > 0 then redis.call('HINCRBY', KEYS[1], 'n', adopted) end
if saved then
  if adopted > 0 or stale(ARGV[2]) then keep(ARGV[2]) else redis.call('PEXPIRE', KEYS[2], ARGV[2]) end
end
if fence or adopted > 0 then stamp() end
return reply
`)
