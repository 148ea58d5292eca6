package redisstore

// luaChange defines change, which renews the version KEYS[2]. It is the clock in
// microseconds, so that a list that was lost and begun anew has other versions.
const luaChange = `
local function change()
  local clock = redis.call('TIME')
  local next = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
  local last = tonumber(redis.call('GET', KEYS[2]) or '0')
  if last >= next then next = last + 1 end
  redis.call('SET', KEYS[2], string.format('%.0f', next))
end
`

// attachScript adds sessions to a partition's watched ones.
//
//	KEYS[1]  the partition's sessions
//	KEYS[2]  their version
//	ARGV     session ids
//
// Returns the number of sessions that were added.
var attachScript = newScript(luaChange + `
local added = 0
for _, session in ipairs(ARGV) do added = added + redis.call('SADD', KEYS[1], session) end
if added > 0 then change() end
return added
`)

// detachScript removes sessions from a partition's watched ones.
//
//	KEYS[1]  the partition's sessions
//	KEYS[2]  their version
//	ARGV     session ids
//
// Returns the number of sessions that were removed.
var detachScript = newScript(luaChange + `
local removed = 0
for _, session in ipairs(ARGV) do removed = removed + redis.call('SREM', KEYS[1], session) end
if removed > 0 then change() end
return removed
`)

// attachedScript lists a partition's watched sessions if they have changed.
//
//	KEYS[1]  the partition's sessions
//	KEYS[2]  their version
//	ARGV[1]  the version that the caller knows
//
// Returns {version}, or {version, sessions} when it is another one.
var attachedScript = newScript(`
local version = redis.call('GET', KEYS[2]) or '0'
if version == ARGV[1] then return {version} end
return {version, redis.call('SMEMBERS', KEYS[1])}
`)
