// Package queue carries calls to executors and their outcomes back, over NATS
// JetStream. Both sides of the wire live here, so that the protocol has one home:
//
//   - a dispatcher provisions the streams, publishes calls, consumes outcomes and
//     answers registrations and look-ups;
//   - an executor registers its functions, pulls calls from its pool's durable
//     consumer and reports outcomes.
//
// Subjects, under a prefix that defaults to "fn"; <token> is call.Token of the
// function's name:
//
//	fn.call.<token>          calls, published by dispatchers only, stream FN_CALLS
//	fn.result.<token>.p<NN>  outcomes by partition of the session, stream FN_RESULTS
//	fn.dead.<token>          what could not be used, stream FN_DEAD
//	fn.register.<token>      request and reply: declare a function, get the binding
//	fn.outcome.<token>       request and reply: is this call still wanted?
//	fn.cancel.<token>        broadcast: stop working on a call
//
// A call that an executor terminates leaves the stream at once. Its dispatcher learns of
// it from the server's advisory and answers it when the reason of +TERM names it:
// {"reason":"…","key":…,"attempt":…,"nonce":…,"result_subject":…,"on_uncertain":…}, all
// but the reason as they are in the call's headers (ADR 0013).
//
// Arguments and outputs are copied as the bytes they are, never re-encoded.
//
// docs/protocol.md is the protocol in full, protocol/ its schemas and fixtures.
package queue
