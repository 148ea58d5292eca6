package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/callfan/callfan/pkg/call"
)

// Lookup asks the dispatchers how the call stands, before it is run again. It
// waits for an answer for 10 s, or less if ctx ends first; then the error wraps
// ErrNoDispatcher.
func (c *Conn) Lookup(ctx context.Context, d call.Dispatch) (call.Standing, error) {
	token, err := functionToken(d.Function)
	if err != nil {
		return "", err
	}
	body := lookupRequest(d)
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	waits := newBackOff(time.Second)
	for {
		attempt, stop := context.WithTimeout(ctx, 2*time.Second)
		reply, err := c.request(attempt, c.names.outcome(token), body)
		stop()
		var standing call.Standing
		if err == nil {
			if standing, err = parseStanding(reply); err == nil {
				return standing, nil
			}
		}
		if errors.Is(err, ErrPermission) || errors.Is(err, nats.ErrConnectionClosed) {
			return "", err
		}
		if sleep(ctx, waits.NextBackOff()) != nil {
			return "", fmt.Errorf("%w about %s: %w", ErrNoDispatcher, d.Key, err)
		}
	}
}

func lookupRequest(d call.Dispatch) []byte {
	body := appendKey([]byte{'{'}, d.Key)
	body = append(body, `,"nonce":`...)
	body = appendString(body, d.Nonce)
	body = append(body, `,"handover":`...)
	return append(strconv.AppendInt(body, int64(d.Handover), 10), '}')
}

func parseStanding(reply []byte) (call.Standing, error) {
	var answer struct {
		Standing call.Standing `json:"standing"`
		Error    string        `json:"error"`
	}
	if err := json.Unmarshal(reply, &answer); err != nil {
		return "", fmt.Errorf("look-up: unreadable answer: %w", err)
	}
	switch answer.Standing {
	case call.StandingPending, call.StandingAnswered, call.StandingCancelled, call.StandingUnknown:
		return answer.Standing, nil
	}
	return "", fmt.Errorf("look-up: the dispatcher answered %q %s", answer.Standing, answer.Error)
}

func appendKey(dst []byte, k call.Key) []byte {
	dst = append(dst, `"session_id":`...)
	dst = appendString(dst, k.Session)
	dst = append(dst, `,"turn_id":`...)
	dst = appendString(dst, k.Turn)
	dst = append(dst, `,"call_id":`...)
	return appendString(dst, k.Call)
}
