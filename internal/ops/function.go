package ops

import (
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// Function is a registered function, as the admin API shows it.
type Function struct {
	call.Function
	// Pool is the pool of executors that serves it.
	Pool string `json:"pool"`
	// Language and Version are those of the executor that last changed the
	// definition, at Changed.
	Language string    `json:"language,omitempty"`
	Version  string    `json:"version,omitempty"`
	Changed  time.Time `json:"changed_at"`
	// Effective is the policy in force: what was declared, what this dispatcher's
	// configuration overrules, and the defaults.
	Effective call.Policy `json:"effective_policy"`
}
