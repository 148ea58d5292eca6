package call

// Delivered is an outcome as the queue delivered it to a dispatcher.
type Delivered struct {
	// Outcome is what the executor reported. Only valid when Invalid is nil.
	Outcome Outcome
	// Token is the function's token in the subject that carried the message. The
	// server's permissions vouch for it; what the payload says does not count.
	Token string
	// ID is the message id, the same for a repeated outcome.
	ID string
	// Deliveries counts how often this message was handed out, from 1.
	Deliveries int
	// Invalid says why the message is not an outcome; nil when it is one.
	Invalid error
	// Subject and Body are the message as it came, for a dead letter.
	Subject string
	Body    []byte
	// Ack removes the message from its stream. It must be called once the message
	// is not needed any more; calling it again does nothing.
	Ack func()
}

// DeadLetter is a message that could not be used, kept for operators.
type DeadLetter struct {
	// Token is the function's token.
	Token string
	// Reason is one of a few machine words, Detail the sentence for people.
	Reason, Detail string
	Subject        string
	Body           []byte
}

// Question is what an executor asks about a call before it runs it again.
type Question struct {
	Key
	// Token is the function's token in the subject of the question; the server's
	// permissions vouch for it.
	Token string
	// Nonce is that of the attempt that was delivered again. It need not be genuine.
	Nonce string
	// Handover is the number of the hand-over that was delivered again; 0 when the
	// executor did not tell.
	Handover int
}

// Standing is what a dispatcher answers to an executor that asks about a call
// before it runs it again.
type Standing string

// The standings of a call.
const (
	// StandingPending: no result is saved; somebody waits for one.
	StandingPending Standing = "pending"
	// StandingAnswered: the attempt is over: a result is saved or waits to be, a later
	// attempt follows, or an operator decides. Running it would be wrong.
	StandingAnswered Standing = "answered"
	// StandingCancelled: nobody waits for the result any more.
	StandingCancelled Standing = "cancelled"
	// StandingUnknown: the dispatcher has no record of the call.
	StandingUnknown Standing = "unknown"
)

// Standing is what the state means to an executor that asks before a re-run.
func (s State) Standing() Standing {
	switch {
	case s == Absent:
		return StandingUnknown
	case s == Parked:
		return StandingAnswered
	case s.Open():
		return StandingPending
	case s == Cancelled:
		return StandingCancelled
	default:
		return StandingAnswered
	}
}
