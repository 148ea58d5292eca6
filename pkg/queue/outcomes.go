package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/callfan/callfan/pkg/call"
)

// dispatcherGroup is the queue group of all dispatchers: one of them answers.
const dispatcherGroup = "dispatchers"

// concurrentAnswers bounds how many requests one dispatcher works on at once.
const concurrentAnswers = 64

// ServeOutcomes answers executors that ask how a call stands, until ctx ends. It
// returns once it listens. answer may be called by many goroutines at once, and twice
// for one question; its error tells the executor to ask again. Where it says pending or
// unknown, an outcome of the attempt that waits in the results stream counts as an
// answer too.
func (c *Conn) ServeOutcomes(ctx context.Context, answer func(context.Context, call.Question) (call.Standing, error)) error {
	c.answer.Store(&answer)
	return c.serve(ctx, c.names.outcome("*"), func(ctx context.Context, m *nats.Msg) []byte {
		q := call.Question{Token: lastToken(m.Subject)}
		err := members(m.Data, func(name, value []byte) (err error) {
			switch string(name) {
			case "nonce":
				q.Nonce, err = decodeString(value)
			case "handover":
				q.Handover, err = strconv.Atoi(string(value))
			default:
				err = readKeyMember(&q.Key, name, value)
			}
			return err
		})
		if err == nil && (q.Session == "" || q.Turn == "" || q.Call == "") {
			err = errors.New("session_id, turn_id or call_id is missing")
		}
		var standing call.Standing
		if err == nil {
			standing, err = c.standing(ctx, q, answer)
		}
		if err != nil {
			return append(appendString([]byte(`{"error":`), err.Error()), '}')
		}
		return append(appendString([]byte(`{"standing":`), string(standing)), '}')
	})
}

// serve answers requests on subject, as one of the dispatchers, until ctx ends.
func (c *Conn) serve(ctx context.Context, subject string, answer func(context.Context, *nats.Msg) []byte) error {
	slots := make(chan struct{}, concurrentAnswers)
	sub, err := c.nc.QueueSubscribe(subject, dispatcherGroup, func(m *nats.Msg) {
		if m.Reply == "" {
			return
		}
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, operationTimeout)
			defer cancel()
			_ = m.Respond(answer(ctx, m)) // who gets no answer asks again
		}()
	})
	if err != nil {
		return fmt.Errorf("queue: listen on %s: %w", subject, err)
	}
	context.AfterFunc(ctx, func() { _ = sub.Drain() })
	return nil
}
