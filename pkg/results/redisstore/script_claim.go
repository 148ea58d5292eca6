package redisstore

// claimScript records the absent ones of a turn's calls and answers all.
//
//	KEYS[1]  the turn
//	KEYS[2]  the turn's results
//	KEYS[3]  the session's turns
//	ARGV[1]  fence
//	ARGV[2]  ActiveTTL, ms
//	ARGV[3]  Retention, ms
//	ARGV[4]  turn id
//	ARGV[5…] per call: call id, function, state letter
//
// Returns "FENCED" and writes nothing, or {now, then per call: the entry's first line, result or nil}.
// Listed calls keep their turn alive, ended or not: its expiry is pushed back
// when it is half over.
var claimScript = newScript(luaNow + luaLater + luaFence + luaKeep + luaStale + luaMeta + luaHistory + `
local reply, added = {now}, 0
for i = 5, #ARGV, 3 do
  local field = ':' .. ARGV[i]
  local meta = redis.call('HGET', KEYS[1], field)
  local body = false
  if not meta then
    meta = format(ARGV[i + 2], '0', '0', now, '0', #ARGV[i + 1], ARGV[i + 1])
    redis.call('HSET', KEYS[1], field, meta .. step(ARGV[i + 2], '0', '0', '0', ''))
    added = added + 1
  else
    meta = split(meta)
    if issaved(string.sub(meta, 1, 1)) then body = redis.call('HGET', KEYS[2], ARGV[i]) end
  end
  reply[#reply + 1] = meta
  reply[#reply + 1] = body
end
stamp()
local unfinished = tonumber(redis.call('HGET', KEYS[1], 'n') or '0')
if added > 0 then
  redis.call('HSET', KEYS[1], 'n', unfinished + added)
  if unfinished == 0 or stale(ARGV[2]) then keep(ARGV[2]) end
else
  local ttl = unfinished > 0 and ARGV[2] or ARGV[3]
  if stale(ttl) then keep(ttl) end
end
return reply
`)
