// Package redisstore is the results store on Redis: standalone, Sentinel or
// Cluster, over TLS or a Unix socket.
//
// Every change is one Lua script on keys of one hash slot, so it happens whole
// or not at all, and running it again changes nothing and gives the same answer.
// Concurrent requests share pipelines; see batcher. Scripts never look into
// results: the bytes that a handler gave are the bytes that come back.
//
// # Keys
//
// With the default prefix, and ids escaped as in a URL path so that braces in
// an id cannot move a key to another slot:
//
//	fx:{SESSION}:t:TURN       hash: the turn's calls, its fence, its count of unfinished calls
//	fx:{SESSION}:r:TURN       hash: the saved results, by call id; gone once all calls ended
//	fx:{SESSION}:turns        sorted set: turn ids by the time at which they are forgotten
//	fx:lease:{pN}             hash: owner, fence and expiry of a partition
//	fx:attached:{pN}          set: the watched sessions of a partition
//	fx:attached:{pN}:version  string: changes with that set
//	fx:members                sorted set: announced dispatchers by expiry
//
// Results live apart from the turn's hash: they are dropped when their call ends,
// while the hash, with the history of its calls, stays for the retention.
//
// # Fencing
//
// A turn remembers the highest fence that wrote to it and refuses lower ones.
// The lease itself lives in another slot and is never read by a write: the
// resource, not the lock, decides.
package redisstore
