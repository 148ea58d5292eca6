//go:build unix

package chaos

import (
	"cmp"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"
)

// Config is one run. The zero value works: 30 minutes, a drawn seed.
type Config struct {
	// Duration is how long the nemesis is at work and calls are asked for. Defaults to 30 min.
	Duration time.Duration
	// Seed decides the workload and the nemesis' choices; their timing against the processes is not repeatable. Zero
	// draws one.
	Seed uint64
	// Rate is how many calls are asked for in a second. Defaults to 13, which is 23,000 in 30 minutes.
	Rate float64
	// Gap is the mean time between two faults of one process. Defaults to 15 s, and to less for a planted fault.
	Gap time.Duration
	// Faults limits the nemesis to some domains: "executor", "dispatcher", "nats", "redis", "api". Empty means all, or those that a
	// planted fault shows with.
	Faults []string
	// Bug builds the programs with a planted fault, to see the checker catch it. See [Bugs].
	Bug string
	// Settle bounds the wait for the end of all turns after everything was healed. Defaults to 4 min.
	Settle time.Duration
	// Dir keeps logs and records. Empty uses a temporary directory, which is removed when the run passes.
	Dir string
	// Out gets the progress. Defaults to nothing.
	Out io.Writer
}

func (c Config) withDefaults() Config {
	if c.Duration == 0 {
		c.Duration = 30 * time.Minute
	}
	if c.Seed == 0 {
		c.Seed = rand.Uint64N(1_000_000) + 1
	}
	if c.Rate == 0 {
		c.Rate = 13
	}
	bug := Bugs[c.Bug]
	if c.Gap == 0 {
		c.Gap = cmp.Or(bug.gap, 15*time.Second)
	}
	if c.Faults == nil {
		c.Faults = bug.faults
	}
	if c.Settle == 0 {
		c.Settle = 4 * time.Minute
	}
	if c.Out == nil {
		c.Out = io.Discard
	}
	return c
}

// random is the source of one part's choices, so that parts do not disturb each other's.
func (c Config) random(part uint64) *rand.Rand {
	return rand.New(rand.NewPCG(c.Seed, part)) //nolint:gosec // faults, not secrets
}

func (c Config) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(c.Out, &slog.HandlerOptions{Level: slog.LevelInfo}))
}
