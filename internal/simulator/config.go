package simulator

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// Config is what a [Simulator] needs. The zero value works: profile "openai", any API key, no faults, no webhooks.
type Config struct {
	// Profile chooses the defaults of Switches. Empty means [ProfileOpenAI].
	Profile Profile
	// Switches overrides the profile's switches when not nil. Start from [Profile.Switches] and change what you need.
	Switches *Switches
	// APIKeys lists the accepted bearer keys. Empty means that any non-empty key is accepted.
	APIKeys []string
	// Fixtures prepares the objects under the fixed ids ("session_id", "turn_id", …) that openai-go's own tests use.
	Fixtures bool
	// Faults is the initial fault plan; it can be changed at runtime by [Simulator.SetFaults] or PUT /_sim/faults.
	Faults Faults
	// Webhooks lists endpoints to be registered from the start.
	Webhooks []WebhookEndpoint
	// WebhookDelivery tunes the delivery of webhooks.
	WebhookDelivery WebhookDelivery
	// AdmissionDelay is the time between the creation of a session and the start of its first turn. Input posted in
	// that time is refused with 409. Zero starts the turn before the answer to the creation is written.
	AdmissionDelay time.Duration
	// ModelDelay is the time the model "thinks" before every step of a turn. Zero steps at once.
	ModelDelay time.Duration
	// QueueDelay is how long a background response of the Responses API stays queued. Zero starts it at once.
	QueueDelay time.Duration
	// StreamDelay is the time before every event of a streamed response. Zero sends them as they are made.
	StreamDelay time.Duration
	// StateFile keeps sessions with their turns, items, calls and accepted results, agents, responses, conversations and
	// counts over a restart; a turn that was running goes on, and a response that was being made is made anew. It is read by [New], and replaced at [Simulator.Close] and at most once a second
	// while something changes, so a killed process loses the last second. Streams, webhook endpoints and the fault plan
	// are not in it. One simulator at a time may use a file; the caller sees to it. Empty keeps nothing.
	StateFile string
	// Logger receives the few things worth saying (never arguments, outputs or secrets). Nil discards them.
	Logger *slog.Logger
}

// Simulator is an in-memory Agents and Responses API. Create it with [New], serve [Simulator.Handler], stop it with
// [Simulator.Close]. All methods are safe for concurrent use.
type Simulator struct {
	cfg      Config
	sw       Switches
	log      *slog.Logger
	handler  http.Handler
	sessions registry
	agents   agentStore
	hooks    *webhookService
	faults   faultSet
	stats    counters
	state    *stateFile // nil without a state file
	closing  sync.Once

	responses responseStore

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// New builds a simulator. It fails on an unknown profile, an invalid switch, fault or webhook endpoint; the error
// names the field and the accepted values. A state file that cannot be
// read or written, or is of another version, is an error that names the file and the remedy.
func New(cfg Config) (*Simulator, error) {
	profile, err := ParseProfile(string(cfg.Profile))
	if err != nil {
		return nil, err
	}
	cfg.Profile = profile
	sw := profile.Switches()
	if cfg.Switches != nil {
		sw = *cfg.Switches
	}
	if err := sw.validate(); err != nil {
		return nil, err
	}
	if least := min(cfg.AdmissionDelay, cfg.ModelDelay, cfg.QueueDelay, cfg.StreamDelay); least < 0 {
		return nil, fmt.Errorf("simulator: AdmissionDelay, ModelDelay, QueueDelay and StreamDelay must not be negative (got %s)", least)
	}
	s := &Simulator{cfg: cfg, sw: sw, log: cfg.Logger}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.responses.init()
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.SetFaults(cfg.Faults); err != nil {
		s.cancel()
		return nil, err
	}
	if s.hooks, err = newWebhookService(s, cfg.Webhooks, cfg.WebhookDelivery); err != nil {
		s.cancel()
		return nil, err
	}
	if cfg.StateFile != "" {
		if err := s.openState(cfg.StateFile); err != nil {
			s.cancel() // and not Close, which would replace the file
			s.wg.Wait()
			return nil, err
		}
	}
	if cfg.Fixtures {
		s.prepareFixtures()
	}
	s.handler = s.routes()
	for ses := range s.sessions.walk(nil, false) {
		ses.resume()
	}
	for _, r := range s.responses.all() {
		r.resume()
	}
	return s, nil
}

// Handler returns the HTTP handler of the whole simulator. The API answers under "/v1/…" and, for clients whose base
// URL has no version, under "/…".
func (s *Simulator) Handler() http.Handler { return s.handler }

// Close ends all streams and pending timers, and waits for the webhook deliveries to stop and for the state to
// be saved. Requests that arrive later
// are answered as before, but no turn advances by itself any more. The HTTP server belongs to the caller.
func (s *Simulator) Close() {
	s.closing.Do(func() {
		s.cancel()
		s.wg.Wait()
		if s.state != nil {
			s.tryWriteState()
		}
	})
}

// after runs f on its own goroutine in d, unless the simulator is closed by then.
func (s *Simulator) after(d time.Duration, f func()) {
	time.AfterFunc(d, func() {
		if s.ctx.Err() == nil {
			f()
			s.changed()
		}
	})
}
