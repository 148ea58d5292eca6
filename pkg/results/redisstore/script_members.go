package redisstore

// joinScript announces a dispatcher and lists those announced.
//
//	KEYS[1]  the members
//	ARGV[1]  member
//	ARGV[2]  ttl, ms
//
// Returns the members.
var joinScript = newScript(luaNow + luaLater + `
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZADD', KEYS[1], later(ARGV[2]), ARGV[1])
return redis.call('ZRANGE', KEYS[1], 0, -1)
`)
