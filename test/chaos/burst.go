//go:build unix

package chaos

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/callfan/callfan/internal/simulator"
)

// burst makes the API fail in one or a few ways for 3 to 15 s.
func (n *nemesis) burst(ctx context.Context, rng *rand.Rand) {
	posts := simulator.EndpointEventsPost
	rule := func(kind simulator.FaultKind, at simulator.Endpoint, rate float64) func(*simulator.Faults) {
		return func(f *simulator.Faults) {
			f.Rules = append(f.Rules, simulator.FaultRule{Kind: kind, Endpoint: at, Rate: rate, RetryAfter: "1"})
		}
	}
	kinds := []struct {
		name string
		add  func(*simulator.Faults)
	}{
		{"429", rule(simulator.FaultRateLimited, "", 0.5)},
		{"500", rule(simulator.FaultInternalError, "", 0.3)},
		{"502", rule(simulator.FaultBadGateway, posts, 0.5)},
		{"503", rule(simulator.FaultUnavailable, "", 1)},
		{"response_lost", rule(simulator.FaultResponseLost, posts, 0.4)},
		{"accepted_lost", rule(simulator.FaultAcceptedLost, posts, 0.4)},
		{"accepted_lost_keeps_key", func(f *simulator.Faults) {
			rule(simulator.FaultAcceptedLost, posts, 0.3)(f)
			f.AcceptedLostKeepsKey = true
		}},
		{"registration_delay", func(f *simulator.Faults) { f.RegistrationDelay = simulator.Span{MinMS: 50, MaxMS: 2500} }},
		{"listed_after_accept", func(f *simulator.Faults) { f.ListedAfterAccept = simulator.Span{MinMS: 500, MaxMS: 8000} }},
		{"latency", func(f *simulator.Faults) { f.Latency = simulator.Span{MinMS: 50, MaxMS: 1500} }},
		{"stream_cut", rule(simulator.FaultStreamCut, simulator.EndpointStream, 0.5)},
		{"stream_error", rule(simulator.FaultStreamError, simulator.EndpointStream, 0.3)},
	}
	faults := simulator.Faults{Seed: rng.Uint64() | 1}
	var names []string
	for range 1 + rng.IntN(3) {
		k := kinds[rng.IntN(len(kinds))]
		names = append(names, k.name)
		k.add(&faults)
	}
	lasts := spread(rng, 3*time.Second, 15*time.Second)
	if err := n.api.sim.SetFaults(faults); err != nil {
		n.log.Error("the simulator refuses its faults", "error", err)
		return
	}
	n.did("api_burst", "api", "ways", strings.Join(names, ","), "for", lasts)
	sleep(ctx, lasts)
	_ = n.api.sim.SetFaults(simulator.Faults{}) // the zero plan is valid
}
