package effects

// Class is how a function's effects are kept from happening twice.
type Class string

// The classes of the workload's functions.
const (
	// None only reads: it may run any number of times.
	None Class = "none"
	// Keyed is declared idempotent: its handler acts once for each idempotency key.
	Keyed Class = "idempotent"
	// Verified has side effects and a verify handler that tells whether a call ran.
	Verified Class = "verify"
	// Fail has side effects and is answered with an error when nobody knows whether it ran.
	Fail Class = "fail"
	// Parked has side effects and waits for an operator when nobody knows whether it ran.
	Parked Class = "park"
)

// Function is one function of the workload.
type Function struct {
	Name  string
	Class Class
	// Weight is its share of the calls.
	Weight int
}

// Functions are all functions of the workload. A third of the calls have a counted effect.
func Functions() []Function {
	return []Function{
		{"read", None, 40},
		{"search", None, 15},
		{"flaky", None, 10}, // its first attempts end in a technical failure
		{"charge", Fail, 10},
		{"credit", Keyed, 9},
		{"transfer", Verified, 10},
		{"refund", Parked, 6},
	}
}
