package sources

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/callfan/callfan/pkg/call"
)

// lived is how long a stream must have been open for its loss to count as the
// first failure, and not as one more of a series.
const lived = 10 * time.Second

// Event is a stream event, reduced. It is an alias of an unnamed struct, so that
// the client that makes it need not know this package.
type Event = struct {
	// Type is the event's type, such as agent.session.requires_action.
	Type string
	// SessionID and TurnID are empty where the event names none.
	SessionID, TurnID string
	// Item is the type of the item that the event is about.
	Item string
}

// Subscriber opens event streams.
type Subscriber interface {
	// Stream subscribes until the stream or ctx ends: onOpen once, then onEvent for
	// each event, on the calling goroutine. Its errors are *call.Refusal; nil means
	// that the server closed the stream.
	Stream(ctx context.Context, session string, onOpen func(), onEvent func(Event)) error
}

// StreamConfig tunes a Stream. The zero value is good for thousands of sessions.
type StreamConfig struct {
	// MinBackoff and MaxBackoff bound the wait before a lost stream is opened
	// again; it doubles with each failure and is spread by half of itself. Default
	// to 100 ms and 30 s.
	MinBackoff, MaxBackoff time.Duration
	// SlowRetry is the wait after the API refused the key or does not know the
	// session. Defaults to 1 minute.
	SlowRetry time.Duration
	// MaxOpening limits how many streams are being opened at one time. Defaults to 64.
	MaxOpening int
	// OpenRate limits how many streams are opened per second. Defaults to 500.
	OpenRate int
	// Logger hears of streams that cannot be opened, once per kind of trouble.
	// Defaults to no logging.
	Logger *slog.Logger
}

// Stream watches sessions by their event streams. It is safe for concurrent use;
// its limits hold for all the sessions that it watches.
type Stream struct {
	api  Subscriber
	cfg  StreamConfig
	gate *gate
	log  *slog.Logger
	said *troubles
}

// NewStream makes a source on the streams of api.
func NewStream(api Subscriber, cfg StreamConfig) *Stream {
	cfg.MinBackoff = cmp.Or(cfg.MinBackoff, 100*time.Millisecond)
	cfg.MaxBackoff = max(cmp.Or(cfg.MaxBackoff, 30*time.Second), cfg.MinBackoff)
	cfg.SlowRetry = cmp.Or(cfg.SlowRetry, time.Minute)
	log := cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	return &Stream{
		api: api, cfg: cfg, log: log,
		gate: newGate(cmp.Or(cfg.MaxOpening, 64), cmp.Or(cfg.OpenRate, 500)),
		said: &troubles{log: log},
	}
}

// Watch keeps a stream of the session open until ctx ends and calls nudge, with
// a trigger, whenever the session should be looked at: after the stream opened
// (only then can no event be missed), at events that may change what is pending,
// and when the stream was lost. It uses the calling goroutine and no other; nudge
// must not block.
func (s *Stream) Watch(ctx context.Context, session string, nudge func(trigger string)) {
	var delays *backoff.ExponentialBackOff // none while all goes well
	for {
		if !s.gate.enter(ctx) {
			return
		}
		life, err := s.follow(ctx, session, nudge)
		if ctx.Err() != nil {
			return
		}
		if life > 0 {
			nudge(TriggerStreamLost)
		}
		if delays == nil || life >= lived {
			delays = newBackoff(s.cfg.MinBackoff, s.cfg.MaxBackoff)
		}
		if !sleep(ctx, s.pause(ctx, session, err, delays, nudge)) {
			return
		}
	}
}

// follow holds one stream to its end and says how long it was open, at least 1 ns
// if it ever was.
func (s *Stream) follow(ctx context.Context, session string, nudge func(string)) (life time.Duration, err error) {
	var opened time.Time
	w := watcher{waiting: true} // nobody knows until the first status event
	err = s.api.Stream(ctx, session,
		func() {
			opened = time.Now()
			s.gate.leave()
			s.said.over()
			nudge(TriggerStreamOpen)
		},
		func(e Event) {
			if trigger := w.trigger(e); trigger != "" {
				nudge(trigger)
			}
		})
	if opened.IsZero() {
		s.gate.leave()
		return 0, err
	}
	return max(time.Since(opened), 1), err
}

// pause decides how long to wait before the stream is opened again.
func (s *Stream) pause(ctx context.Context, session string, err error, delays backoff.BackOff, nudge func(string)) time.Duration {
	if err == nil {
		return delays.NextBackOff()
	}
	s.log.DebugContext(ctx, "stream ended", "session_id", session, "error", err)
	r := &call.Refusal{Class: call.RefusedBusy}
	errors.As(err, &r)
	s.gate.hold(min(r.RetryAfter, s.cfg.SlowRetry))
	switch r.Class {
	case call.RefusedGone:
		nudge(TriggerGone)
		return spread(s.cfg.SlowRetry)
	case call.RefusedAuth:
		s.said.report(ctx, r.Class, err)
		return max(spread(s.cfg.SlowRetry), r.RetryAfter)
	default:
		s.said.report(ctx, r.Class, err)
		return max(delays.NextBackOff(), spread(r.RetryAfter))
	}
}
