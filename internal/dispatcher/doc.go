// Package dispatcher answers the required actions of sessions.
//
// A call walks through the package in the order of its files:
//
//	ownership   which partitions this replica owns, by lease
//	partition   the sessions of an owned partition and its outcomes
//	session     one goroutine per session decides everything about it
//	reconcile   GET the session: required_actions is the only truth
//	admit       can the call be handed to an executor at all?
//	publish     hand calls over to the executors
//	collect     outcomes: check, save the first, pass on
//	batch       which saved results go into one submission
//	submit      POST it, and read a refusal for what has to be done
//	settle      what the API accepted and has applied
//
// The loop is level-triggered: every trigger means only "reconcile session S",
// so a lost message, event or replica delays an answer and never loses it. The
// package knows no NATS, Redis or OpenAI; it declares the small interfaces that
// it needs.
package dispatcher
