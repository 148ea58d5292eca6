package conformance

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/callfan/callfan/pkg/call"
)

// placed is a call that was handed over.
type placed struct {
	call.Dispatch
	// published says when.
	published time.Time
}

// placing changes a call before it is handed over.
type placing func(*call.Dispatch)

func timeout(d time.Duration) placing { return func(c *call.Dispatch) { c.Timeout = d } }
func deadline(d time.Duration) placing {
	return func(c *call.Dispatch) { c.Deadline = time.Now().Add(d) }
}
func choice(o call.OnUncertain) placing { return func(c *call.Dispatch) { c.OnUncertain = o } }
func uncertain() placing                { return func(c *call.Dispatch) { c.Uncertain = true } }
func traceparent(parent string) placing { return func(c *call.Dispatch) { c.Traceparent = parent } }
func (t *trial) again(p *placed) placing {
	return func(c *call.Dispatch) { c.Key, c.Attempt = p.Key, p.Attempt+1 }
}

// draft is a call that is not handed over yet. The choice for uncertain calls is left to
// the function.
func (t *trial) draft(function, arguments string, how ...placing) *placed {
	n := t.calls.Add(1)
	p := &placed{Dispatch: call.Dispatch{
		Call: call.Call{
			Key: call.Key{
				Session: fmt.Sprintf("sess_%s_%d", t.scene, n), Turn: fmt.Sprintf("turn_%d", n), Call: fmt.Sprintf("call_%s_%d", t.scene, n),
			},
			Function: function, Arguments: []byte(arguments),
		},
		Attempt: 1, Handover: 1, Timeout: 30 * time.Second, Deadline: time.Now().Add(2 * time.Minute),
	}}
	for _, change := range how {
		change(&p.Dispatch)
	}
	p.Partition = call.Partition(p.Session, partitions)
	p.Nonce = t.nonces.For(p.Key, call.Token(function), p.Attempt)
	return p
}

// call hands a call over.
func (t *trial) call(function, arguments string, how ...placing) *placed {
	p := t.draft(function, arguments, how...)
	t.publish(p)
	return p
}

func (t *trial) publish(p *placed) {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	batch := []call.Dispatch{p.Dispatch}
	p.published = time.Now()
	t.must(t.conn.Publish(ctx, batch)[0], "publish a call")
	p.Sequence = batch[0].Sequence
}

// publishRaw hands a call over as a message that the caller has changed.
func (t *trial) publishRaw(p *placed, change func(*nats.Msg)) {
	token := call.Token(p.Function)
	m := &nats.Msg{
		Subject: "fn.call." + token,
		Data: fmt.Appendf(nil, `{"type":"function_call","session_id":%q,"turn_id":%q,"call_id":%q,"name":%q,"arguments":%s}`,
			p.Session, p.Turn, p.Key.Call, p.Function, p.Arguments),
		Header: nats.Header{
			"Nats-Msg-Id": {p.MessageID()}, "Fn-Protocol": {"1"}, "Fn-Key": {p.Key.String()}, "Fn-Attempt": {strconv.Itoa(p.Attempt)},
			"Fn-Handover": {strconv.Itoa(p.Handover)}, "Fn-Nonce": {p.Nonce}, "Fn-Idempotency-Key": {p.IdempotencyKey()},
			"Fn-Result-Subject": {fmt.Sprintf("fn.result.%s.p%02d", token, p.Partition)},
			"Fn-Timeout-Ms":     {strconv.FormatInt(p.Timeout.Milliseconds(), 10)}, "Fn-Deadline": {strconv.FormatInt(p.Deadline.UnixMilli(), 10)},
		},
	}
	change(m)
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	p.published = time.Now()
	stored, err := t.conn.JetStream().PublishMsg(ctx, m)
	t.must(err, "publish a message")
	p.Sequence = stored.Sequence
}

// queued says whether the call is in the queue, unacknowledged.
func (t *trial) queued(p *placed) bool {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	stream, err := t.conn.JetStream().Stream(ctx, "FN_CALLS")
	if err != nil {
		return false
	}
	_, err = stream.GetMsg(ctx, p.Sequence)
	return err == nil
}

// cancel sends a cancel notice.
func (t *trial) cancel(p *placed) {
	t.must(t.conn.Cancel(t.ctx, p.Key, p.Function, "the turn has ended"), "send a cancel notice")
	t.must(t.conn.NATS().FlushTimeout(patience), "send a cancel notice")
}
