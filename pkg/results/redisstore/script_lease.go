package redisstore

// acquireScript takes or renews the lease of a partition.
//
//	KEYS[1]  the lease
//	ARGV[1]  owner
//	ARGV[2]  ttl, ms
//
// Returns {fence, left in ms} when the owner holds it now, {} when another does.
// The fence is the clock, or one more than the last: it grows even when Redis
// lost the lease or its clock was set back.
var acquireScript = newScript(luaNow + luaLater + `
local owner, fence, expiry = unpack(redis.call('HMGET', KEYS[1], 'o', 'f', 'e'))
if owner and owner ~= ARGV[1] and tonumber(expiry) > tonumber(now) then return {} end
if owner ~= ARGV[1] then
  local next = tonumber(now)
  if fence and tonumber(fence) >= next then next = tonumber(fence) + 1 end
  fence = string.format('%.0f', next)
end
redis.call('HSET', KEYS[1], 'o', ARGV[1], 'f', fence, 'e', later(ARGV[2]))
return {fence, ARGV[2]}
`)

// releaseScript gives up the lease of a partition. The fence stays behind.
//
//	KEYS[1]  the lease
//	ARGV[1]  owner
//
// Returns 1 when the owner held it, else 0.
var releaseScript = newScript(`
if redis.call('HGET', KEYS[1], 'o') ~= ARGV[1] then return 0 end
redis.call('HDEL', KEYS[1], 'o', 'e')
return 1
`)
