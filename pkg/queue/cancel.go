package queue

import (
	"context"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/callfan/callfan/pkg/call"
)

// Cancel tells every executor of the function to stop working on the call. It is
// a broadcast without an answer: who is not connected does not hear it.
func (c *Conn) Cancel(_ context.Context, key call.Key, function, reason string) error {
	token, err := functionToken(function)
	if err != nil {
		return err
	}
	if err := c.nc.Publish(c.names.cancel(token), cancelNotice(key, reason)); err != nil {
		return fmt.Errorf("cancel %s: %w", key, err)
	}
	return nil
}

// OnCancel calls f for every cancellation of a call of the functions, until stop
// is called. f is called by one goroutine per function and must not block.
func (c *Conn) OnCancel(functions []string, f func(key call.Key, reason string)) (stop func(), err error) {
	var subs []*nats.Subscription
	stop = sync.OnceFunc(func() {
		for _, sub := range subs {
			_ = sub.Unsubscribe()
		}
	})
	for _, function := range functions {
		token, err := functionToken(function)
		if err != nil {
			stop()
			return nil, err
		}
		sub, err := c.nc.Subscribe(c.names.cancel(token), func(m *nats.Msg) {
			if key, reason, ok := parseCancel(m.Data); ok {
				f(key, reason)
			}
		})
		if err != nil {
			stop()
			return nil, fmt.Errorf("listen for cancellations of %q: %w", function, err)
		}
		subs = append(subs, sub)
	}
	return stop, nil
}

func cancelNotice(key call.Key, reason string) []byte {
	body := appendKey([]byte{'{'}, key)
	body = append(body, `,"reason":`...)
	return append(appendString(body, reason), '}')
}

func parseCancel(body []byte) (key call.Key, reason string, ok bool) {
	err := members(body, func(name, value []byte) (err error) {
		switch string(name) {
		case "reason":
			reason, err = decodeString(value)
		default:
			err = readKeyMember(&key, name, value)
		}
		return err
	})
	return key, reason, err == nil && key.Session != "" && key.Turn != "" && key.Call != ""
}

// readKeyMember reads one member of a key; others are ignored.
func readKeyMember(key *call.Key, name, value []byte) (err error) {
	switch string(name) {
	case "session_id":
		key.Session, err = decodeString(value)
	case "turn_id":
		key.Turn, err = decodeString(value)
	case "call_id":
		key.Call, err = decodeString(value)
	}
	return err
}
