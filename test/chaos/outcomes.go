//go:build unix

package chaos

import (
	"encoding/json"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// outcomes are what executors published, as a bystander of the results stream saw it. It misses some while its server
// is down.
type outcomes struct {
	mu sync.Mutex
	// succeeded are the calls, session/turn/call, whose first final outcome was a success; others had a failure.
	succeeded map[string]bool
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
	var body struct {
		Session string `json:"session_id"`
		Turn    string `json:"turn_id"`
		Call    string `json:"call_id"`
	}
	if json.Unmarshal(m.Data, &body) != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	key := body.Session + "/" + body.Turn + "/" + body.Call
	if _, known := o.succeeded[key]; !known {
		o.succeeded[key] = success
	}
}

// firstSucceeded says whether the call's first final outcome was a success.
func (o *outcomes) firstSucceeded(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.succeeded[key]
}
