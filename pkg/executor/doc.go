// Package executor runs functions for OpenAI agents: it is callfan's Go SDK.
//
// A program makes an Executor, gives it functions by Handle or HandleRaw, and
// calls Run. The executor registers its functions with a dispatcher, pulls their
// calls from NATS JetStream, runs the handlers and reports what came of them.
// It holds no key of the OpenAI API; NATS is the only thing it connects to.
//
//	ex, err := executor.New(executor.Config{Pool: "weather"})
//	...
//	err = executor.Handle(ex, "get_weather", func(ctx context.Context, in In) (Out, error) { ... },
//		executor.WithDescription("Current weather of a city."),
//		executor.WithEffects(call.EffectsNone))
//	...
//	err = ex.Run(ctx)
//
// # What a handler's return means
//
// An output, see Handle, is a success and goes to the model. A plain error is a
// business failure: its text goes to the model and nothing is retried. Retry marks
// a technical failure, about which the dispatcher decides, and Uncertain one after
// which the function may have taken effect. A panic, a timeout and arguments that do
// not fit become failures; no success is ever invented.
//
// # A call may be delivered again
//
// An executor that dies in the middle of a call leaves its outcome unknown. The
// next executor first asks whether the call is answered already, and then goes by
// what the dispatcher or else the function says, see WithOnUncertain. Functions with
// EffectsNone and EffectsIdempotent are run again by default. For those with
// EffectsSideEffects, the default, the verify handler is asked, see WithVerify: a
// call that is Done succeeds with the output it gives, one that is NotDone is run
// now, and when it CannotTell the dispatcher decides. Without a verify handler the
// call is answered with a failure that says that the outcome is unknown, or waits for an
// operator where call.UncertainPark says so. A handler with effects should pass Call.IdempotencyKey, the same for every attempt and for
// the verify handler, to its own downstreams.
//
// # Stopping
//
// Cancelling the context of Run is the soft stop: no more calls are pulled, calls
// that were not started are given back at once, and running handlers may finish.
// After Config.StopTimeout comes the hard stop: the contexts of the handlers are
// cancelled with ErrStopped. Leases are extended until the last call is settled.
package executor
