package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/callfan/callfan/pkg/call"
)

// The types of the server's notices about messages that it gave up.
const (
	advisoryMaxDeliver = "io.nats.jetstream.advisory.v1.max_deliver"
	advisoryTerminated = "io.nats.jetstream.advisory.v1.terminated"
)

// terminatedText answers a call that an executor could not use.
const terminatedText = "function crashed: its executor could not use the call and gave it up"

// givenUp is a call that the server gave up.
type givenUp struct {
	Type       string `json:"type"`
	Stream     string `json:"stream"`
	Consumer   string `json:"consumer"`
	StreamSeq  uint64 `json:"stream_seq"`
	Deliveries uint64 `json:"deliveries"`
	Reason     string `json:"reason"`

	terminated bool
	// swept: no notice says so, but it is where nobody is given it.
	swept bool
	// call is what the message's headers say, as far as they are known.
	call callID
	// subject and body are the message's, when it is there.
	subject string
	body    []byte
}

// callID is what answering a call takes.
type callID struct {
	key           call.Key
	nonce         string
	resultSubject string
	onUncertain   call.OnUncertain
	attempt       string
	handover      int
}

// termReason is what Taken.Term tells the server. A terminated message leaves a work
// queue at once, so the reason carries what answering the call takes.
type termReason struct {
	Reason        string `json:"reason"`
	Key           string `json:"key,omitempty"`
	Attempt       string `json:"attempt,omitempty"`
	Nonce         string `json:"nonce,omitempty"`
	ResultSubject string `json:"result_subject,omitempty"`
	OnUncertain   string `json:"on_uncertain,omitempty"`
}

// encodeTermReason puts the reason and the call's headers together.
func encodeTermReason(reason string, h nats.Header) []byte {
	body, err := json.Marshal(termReason{
		Reason: oneLine(reason, 256), Key: header(h, headerKey), Attempt: header(h, headerAttempt), Nonce: header(h, headerNonce),
		ResultSubject: header(h, headerResultSubject), OnUncertain: header(h, headerOnUncertain),
	})
	if err != nil { // strings always marshal
		return []byte(oneLine(reason, 256))
	}
	return body
}

// readGivenUp reads a notice of the server.
func (c *Conn) readGivenUp(notice []byte) (*givenUp, error) {
	var g givenUp
	if err := json.Unmarshal(notice, &g); err != nil {
		return nil, err
	}
	g.terminated = g.Type == advisoryTerminated
	switch {
	case !g.terminated && g.Type != advisoryMaxDeliver:
		return nil, fmt.Errorf("unknown type %q", g.Type)
	case g.Stream != c.names.calls() || g.StreamSeq == 0:
		return nil, fmt.Errorf("it is about message %d of stream %q", g.StreamSeq, g.Stream)
	}
	var r termReason
	if err := json.Unmarshal([]byte(g.Reason), &r); err != nil {
		return &g, nil //nolint:nilerr // some other program's own text, or none
	}
	g.Reason = r.Reason
	g.call = callID{nonce: r.Nonce, resultSubject: r.ResultSubject, onUncertain: call.OnUncertain(r.OnUncertain), attempt: r.Attempt}
	g.call.key, _ = call.ParseKey(r.Key) // a call without a key is not answered
	if token, _, ok := c.names.parseResult(r.ResultSubject); ok {
		g.subject = c.names.call(token)
	}
	return &g, nil
}

// found takes over the message itself.
func (g *givenUp) found(m *jetstream.RawStreamMsg) {
	g.subject, g.body = m.Subject, m.Data
	g.call = callID{
		nonce: header(m.Header, headerNonce), resultSubject: header(m.Header, headerResultSubject),
		onUncertain: call.OnUncertain(header(m.Header, headerOnUncertain)), attempt: header(m.Header, headerAttempt),
	}
	g.call.handover, _ = strconv.Atoi(header(m.Header, headerHandover)) // 0 is none
	g.call.key, _ = call.ParseKey(header(m.Header, headerKey))
}

// What the server gives as the reason when a message was deleted, or expired, while an
// executor had it.
const (
	reasonDeleted = "Unacknowledged message was deleted"
	reasonLimits  = "Message deleted by stream limits"
)

// deleted says that nobody gave the call up: it was withdrawn too late, or expired. Its
// dispatcher answers it at its deadline.
func (g *givenUp) deleted() bool {
	return g.terminated && (g.Reason == reasonDeleted || g.Reason == reasonLimits)
}

// word is the reason of the dead letter.
func (g *givenUp) word() string {
	if g.terminated {
		return DeadTerminated
	}
	return DeadMaxDeliveries
}

// letter is the call as a dead letter. A terminated one has left the stream, arguments
// and all: then the body is what is known about it.
func (g *givenUp) letter() call.DeadLetter {
	detail := fmt.Sprintf("handed out %d times by %s and never acked", g.Deliveries, g.Consumer)
	if g.swept {
		detail = fmt.Sprintf("found by the sweep: %s is past it and will not hand it out again, and no notice of the server told why", g.Consumer)
	}
	if g.terminated {
		detail = fmt.Sprintf("ended as unusable at delivery %d of %s: %s", g.Deliveries, g.Consumer, g.Reason)
	}
	if g.call.key != (call.Key{}) {
		detail = fmt.Sprintf("call %s, attempt %s: %s", g.call.key, g.call.attempt, detail)
	}
	body := g.body
	if body == nil {
		body = fmt.Appendf(nil, `{"stream":%q,"stream_seq":%d,"consumer":%q,"deliveries":%d}`, g.Stream, g.StreamSeq, g.Consumer, g.Deliveries)
	}
	token := ""
	if g.subject != "" {
		token = lastToken(g.subject)
	}
	return call.DeadLetter{Token: token, Reason: g.word(), Detail: detail, Subject: g.subject, Body: body}
}

// text is what the model is told.
func (g *givenUp) text() string {
	text := call.CrashedText
	if g.terminated {
		text = terminatedText
	}
	if g.call.onUncertain == call.UncertainRerun {
		return text
	}
	return text + "; " + call.UnknownOutcomeText
}

// outcome is what the call is answered with. Whether it took effect is left to an
// operator where the function wants that.
func (g *givenUp) outcome() call.Outcome {
	if g.call.onUncertain == call.UncertainPark {
		return call.Outcome{Kind: call.Uncertain, Reason: g.text()}
	}
	return call.Outcome{Kind: call.Failure, Error: g.text(), Cause: call.ReasonCrashed}
}

// answerGivenUp reports what became of the call. It reports false when the call is not
// known well enough, or the outcome cannot be published at all; then the dispatcher
// answers at the call's deadline.
func (c *Conn) answerGivenUp(ctx context.Context, g *givenUp) (bool, error) {
	token, partition, ok := c.names.parseResult(g.call.resultSubject)
	switch {
	case g.call.key == call.Key{}, !validNonce(g.call.nonce), !ok, token == "", partition >= c.cfg.Partitions:
		return false, nil
	case strings.ContainsAny(token, "*> \t\r\n"), g.subject != "" && token != lastToken(g.subject):
		return false, nil
	}
	d := call.Dispatch{Call: call.Call{Key: g.call.key}, Nonce: g.call.nonce}
	o := g.outcome()
	data, err := appendOutcome(nil, &d, &o)
	if err != nil {
		return false, err
	}
	h := newHeaderSet(2)
	h.add(headerMessageID, outcomeID(&d, o.Kind))
	h.add(headerProtocol, Protocol)
	msg := &nats.Msg{Subject: g.call.resultSubject, Header: h.header, Data: data}
	if err := c.checkSize("outcome", msg); err != nil {
		return false, nil //nolint:nilerr // it cannot ever be published
	}
	c.publishAll(ctx, "outcome", []publication{{msg: msg, err: &err}}, true)
	if errors.Is(err, ErrPermission) || errors.Is(err, ErrTooLarge) {
		c.log.Error("a call that was given up cannot be answered", "error", err)
		return false, nil
	}
	return err == nil, err
}
