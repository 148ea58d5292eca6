// Package property drives real dispatchers over a real results store through random
// interleavings of claims, deliveries, outcomes, crashes, retries, cancels, and
// duplicate and late messages, and checks what must hold whatever happens:
//
//	one answer      at most one result of a call is ever sent to the API, and a saved
//	                result is never replaced
//	an answer       once the faults stop, every listed call is answered, and nothing is
//	                left in the queue or open in the store
//	no second run   a side_effects function without a verify handler is entered once; with
//	                one it is entered again only after "not done"; a parked call only
//	                after an operator's rerun
//	told is told    a lookup of a call that has its answer, or has ended, says so
//	known steps     every transition that is observed is in call.Transitions
//
// The API, the queue and the executors are models in memory, so that a script decides
// what they lose, repeat and delay. What a script did is printed when it fails, and
// shrunk by rapid as far as a test in real time can be. Run more of it by
// -rapid.checks=N (for each of the shards of a store) or another by -rapid.seed=N.
package property
