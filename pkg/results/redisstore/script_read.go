package redisstore

// readScript reads some calls of a turn.
//
//	KEYS[1]  the turn
//	KEYS[2]  the turn's results
//	ARGV     call ids
//
// Returns {now, then per call: entry or nil, result or nil}.
var readScript = newScript(luaNow + `
local reply = {now}
for _, id in ipairs(ARGV) do
  reply[#reply + 1] = redis.call('HGET', KEYS[1], ':' .. id)
  reply[#reply + 1] = redis.call('HGET', KEYS[2], id)
end
return reply
`)

// turnScript reads all calls of a turn.
//
//	KEYS[1]  the turn
//	KEYS[2]  the turn's results
//
// Returns {now, the turn's fields and values, the ids and results}.
var turnScript = newScript(luaNow + `
return {now, redis.call('HGETALL', KEYS[1]), redis.call('HGETALL', KEYS[2])}
`)
