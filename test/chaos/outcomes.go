//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// outcomes are what executors published, as a bystander of the results stream saw it. It misses some while its server
// is down.
type outcomes struct {
	mu sync.Mutex
	// succeeded are the calls, session/turn/call, whose first final outcome was a success; others had a failure.
	succeeded map[string]bool
	// since is when the first success of a call was published.
	since map[string]time.Time
	// left are the calls of which the stream holds an outcome at the end; nil when that could not be read.
	left map[string]bool
}

// listen notes outcomes until the connection closes.
func (o *outcomes) listen(conn *nats.Conn) error {
	_, err := conn.Subscribe("fn.result.>", o.note)
	return err
}

func (o *outcomes) note(m *nats.Msg) {
	id := m.Header.Get("Nats-Msg-Id")
	success := strings.HasSuffix(id, ".success")
	if !success && !strings.HasSuffix(id, ".failure") {
		return
	}
	key := keyIn(m.Data)
	if key == "" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.succeeded[key]; !known {
		o.succeeded[key] = success
	}
	if _, known := o.since[key]; !known && success {
		if o.since == nil {
			o.since = map[string]time.Time{}
		}
		o.since[key] = time.Now()
	}
}

// keyIn is the call that an outcome is about, empty when it does not say.
func keyIn(outcome []byte) string {
	var body struct {
		Session string `json:"session_id"`
		Turn    string `json:"turn_id"`
		Call    string `json:"call_id"`
	}
	if json.Unmarshal(outcome, &body) != nil {
		return ""
	}
	return body.Session + "/" + body.Turn + "/" + body.Call
}

// read notes which outcomes are still in their stream.
func (o *outcomes) read(ctx context.Context, js jetstream.JetStream) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	stream, err := js.Stream(ctx, "FN_RESULTS")
	if err != nil {
		return err
	}
	left := map[string]bool{}
	state := stream.CachedInfo().State
	for seq := state.FirstSeq; state.Msgs > 0 && seq <= state.LastSeq; seq++ {
		m, err := stream.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		left[keyIn(m.Data)] = true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left = left
	return nil
}

// kept says whether the stream may hold an outcome of the call.
func (o *outcomes) kept(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.left == nil || o.left[key]
}

// startedAfter says whether a handler was entered well after a success of the call was published.
func (o *outcomes) startedAfter(key string, at time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	since, known := o.since[key]
	return known && at.Sub(since) > onItsWay
}

// onItsWay is more than an executor needs between what it is told about a call and the start of its handler.
const onItsWay = time.Second

// firstSucceeded says whether the call's first final outcome was a success.
func (o *outcomes) firstSucceeded(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.succeeded[key]
}
