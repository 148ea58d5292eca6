// Package runs drives the function-calling loop of the Responses API: it asks for a
// response, has the function calls in it run, sends all their outputs in the next
// request, and so on until a response has no calls, or a bound is hit.
//
// A run is to the dispatcher what a session is: the run's id is the session, a
// response is the turn. So calls of runs are claimed, handed over, retried, verified,
// parked and answered as those of sessions are, and Engine is the dispatcher.API for
// them: Session lists the calls that have no output yet, and Submit stores outputs. What
// the dispatcher has submitted is durable before it lets go of it.
//
// The state of a run lies in a Store, apart from the results store, whose loss it
// therefore survives. Every change of it is a compare-and-set, so that of two replicas
// that believe to own a run only one can go on.
//
// The package knows neither NATS nor OpenAI's client (ADR 0023).
package runs
