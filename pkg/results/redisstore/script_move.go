package redisstore

// moveScript changes the states of a turn's calls, and drops the results of
// calls that end.
//
//	KEYS[1]  the turn
//	KEYS[2]  the turn's results
//	KEYS[3]  the session's turns
//	ARGV[1]  fence
//	ARGV[2]  ActiveTTL, ms
//	ARGV[3]  Retention, ms
//	ARGV[4]  turn id
//	ARGV[5…] per call: call id, wanted state letter, letters of the states that
//	         it may be entered from, attempt, handover ("0" keeps the entry's), note
//
// Returns "FENCED" and writes nothing, or per call "1" (done) or "0", followed
// by the letter of the state after the move, if the call is known.
//
// It begins with a deletion that deletes nothing: Redis lets a script write
// beyond maxmemory once it has written something that needs no memory, and a
// full store must be able to end calls, which frees some.
var moveScript = newScript(`
redis.call('HDEL', KEYS[1], '')
` + luaNow + luaFence + luaMeta + luaHistory + `
local reply, ended = {}, 0
for i = 5, #ARGV, 6 do
  local field = ':' .. ARGV[i]
  local meta = redis.call('HGET', KEYS[1], field)
  local answer = '0'
  if meta then
    local line, history = split(meta)
    local state, attempt, handover, claimed, length, rest = parse(line)
    local to, note = ARGV[i + 1], ARGV[i + 5]
    local function wanted(value, current) return value == '0' and current or value end
    local toAttempt, toHandover = wanted(ARGV[i + 3], attempt), wanted(ARGV[i + 4], handover)
    if state == to and toAttempt == attempt and toHandover == handover then
      answer = '1'
      if note ~= '' and note ~= latest(history) then
        history = cut(history .. step(to, since(claimed), attempt, handover, note))
        redis.call('HSET', KEYS[1], field, line .. history)
      end
    elseif string.find(ARGV[i + 2], state, 1, true) then
      local after = since(claimed)
      line = format(to, toAttempt, toHandover, claimed, after, length, rest)
      history = cut(history .. step(to, after, toAttempt, toHandover, note))
      redis.call('HSET', KEYS[1], field, line .. history)
      answer, state = '1', to
      if not isopen(to) and not issaved(to) then
        redis.call('HDEL', KEYS[2], ARGV[i])
        ended = ended + 1
      end
    end
    answer = answer .. state
  end
  reply[#reply + 1] = answer
end
if fence then stamp() end
if ended > 0 and redis.call('HINCRBY', KEYS[1], 'n', -ended) <= 0 then
` + luaLater + luaKeep + `
  keep(ARGV[3])
end
return reply
`)
