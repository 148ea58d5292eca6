// Package kvstore is the results store on a JetStream key-value bucket, for
// installations that have NATS and want no second service.
//
// # Keys
//
// Ids have any bytes and length, keys have not, so keys hold hashes of ids and
// the values hold the ids themselves.
//
//	t.SESSION.TURN            the turn: its fence and its calls with their histories, without results
//	b.SESSION.TURN.CALL.BODY  one saved result; BODY is a hash of writer, outcome and result
//	l.N                       the lease of partition N
//	a.N                       the watched sessions of partition N
//	members                   the announced dispatchers
//
// A turn is one value because it is what has to change as a whole: its fence is
// compared and its calls are changed in one compare-and-set by revision. A
// result is written before the turn that points to it and deleted after the turn
// that no longer does; if the process dies in between, its time to live removes
// it. Nothing ever overwrites a result, as its key names its content and writer.
//
// # Concurrency
//
// Requests for one turn that arrive while another is being written are applied
// together in the next write, so that a process does not conflict with itself.
// Different turns, and results, are written in parallel.
//
// # Time
//
// The clock is the server's: its difference to the local one is measured once a
// minute.
package kvstore
