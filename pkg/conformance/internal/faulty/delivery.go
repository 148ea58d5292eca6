package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// delivery is a call that was delivered.
type delivery struct {
	w *worker
	m jetstream.Msg

	Session   string          `json:"session_id"`
	Turn      string          `json:"turn_id"`
	Call      string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`

	attempt, handover, deliveries int
	key, nonce, subject, choice   string
	timeout                       time.Duration
	deadline                      time.Time
	uncertain                     bool
	stopLease                     context.CancelFunc
}

// read takes the message apart; false means that it is no call.
func (d *delivery) read() bool {
	get := func(name string) string {
		if v := d.m.Headers()[name]; len(v) > 0 {
			return v[0]
		}
		return ""
	}
	if get("Fn-Protocol") != "1" && !fault("any-protocol") {
		return false
	}
	if json.Unmarshal(d.m.Data(), d) != nil || d.Session == "" || d.Turn == "" || d.Call == "" || d.Name == "" {
		return false
	}
	number := func(name string) int { n, _ := strconv.Atoi(get(name)); return n }
	d.attempt, d.handover = number("Fn-Attempt"), number("Fn-Handover")
	d.timeout = time.Duration(number("Fn-Timeout-Ms")) * time.Millisecond
	d.deadline = time.UnixMilli(int64(number("Fn-Deadline")))
	d.key, d.nonce, d.subject, d.choice = get("Fn-Idempotency-Key"), get("Fn-Nonce"), get("Fn-Result-Subject"), get("Fn-On-Uncertain")
	d.uncertain = get("Fn-Uncertain") == "1"
	if fault("key-of-the-attempt") {
		d.key += "-" + strconv.Itoa(d.attempt)
	}
	if meta, err := d.m.Metadata(); err == nil {
		d.deliveries = int(meta.NumDelivered) //nolint:gosec // at most 20
	}
	if fault("runs-no-call") {
		return true
	}
	t := token(d.Name)
	choices := map[string]bool{"": true, "rerun": true, "verify": true, "fail": true, "park": true}
	return d.attempt > 0 && d.handover > 0 && d.nonce != "" && choices[d.choice] &&
		d.m.Subject() == "fn.call."+t && strings.HasPrefix(d.subject, "fn.result."+t+".p")
}

func (d *delivery) id() string { return d.Session + "/" + d.Turn + "/" + d.Call }

func (w *worker) handle(m jetstream.Msg) {
	d := &delivery{w: w, m: m}
	if !d.read() {
		fmt.Fprintln(os.Stderr, "faulty: message is no call")
		return
	}
	held := fmt.Sprintf("%s/%d/%d", d.id(), d.attempt, d.handover)
	w.mu.Lock()
	if w.held[held] && !fault("runs-twice") {
		w.mu.Unlock()
		return
	}
	w.held[held] = true
	if fault("keeps-nonce") {
		w.nonces[d.id()] = cmp.Or(w.nonces[d.id()], d.nonce)
		d.nonce = w.nonces[d.id()]
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancels[d.id()] = cancel
	w.mu.Unlock()
	defer func() {
		cancel()
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.held, held)
		delete(w.cancels, d.id())
	}()
	d.keepLease()
	defer d.stopLease()
	d.settle(d.decide(ctx))
}

func (d *delivery) keepLease() {
	ctx, cancel := context.WithCancel(context.Background())
	d.stopLease = cancel
	if fault("no-lease") || fault("blocked-lease") && d.Name == "block" {
		return
	}
	go func() {
		for ctx.Err() == nil {
			pause(ctx, d.w.lease/3)
			if ctx.Err() == nil {
				_ = d.m.InProgress()
			}
		}
	}()
}

// decide gives the members of the outcome, "" for none.
func (d *delivery) decide(ctx context.Context) string {
	if (d.deliveries > 1 || d.uncertain) && !fault("no-look-up") {
		standing := d.lookUp(ctx)
		if standing == "answered" || standing == "cancelled" {
			return ""
		}
	}
	choice := d.choice
	if choice == "" || fault("ignores-choice") {
		choice = map[string]string{"pay": "verify", "pay_blind": "fail", "pay_park": "park"}[d.Name]
	}
	if fault("runs-all-again") {
		choice = "rerun"
	}
	choice = cmp.Or(choice, "rerun")
	if d.deliveries > 3 && !fault("no-crash-limit") {
		switch choice {
		case "rerun":
			return failure("crashed", "function crashed")
		case "park":
			return `"uncertain":{"reason":"crashed"}`
		default:
			return failure("crashed", "function crashed; the outcome is unknown")
		}
	}
	if d.deliveries > 1 || d.uncertain {
		switch {
		case choice == "verify" && d.Name == "pay" && fault("never-verifies"):
		case (choice == "verify" || choice == "park") && d.Name == "pay":
			d.log("verify")
			return success("verified")
		case choice == "verify", choice == "park":
			return `"uncertain":{"reason":"it may have run"}`
		case choice == "fail":
			return failure("unknown_outcome", "the outcome is unknown")
		}
	}
	switch {
	case ctx.Err() != nil:
		return ""
	case d.w.soft.Err() != nil:
		return `"released":true`
	case !time.Now().Before(d.deadline) && !fault("starts-late"):
		return failure("deadline", "the deadline has passed")
	}
	return d.enter(ctx)
}

// enter runs the handler within its time.
func (d *delivery) enter(ctx context.Context) string {
	end, cause := time.Now().Add(d.timeout), "timeout"
	if d.deadline.Before(end) {
		end, cause = d.deadline, "deadline"
	}
	limited, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	if fault("no-timeout") {
		limited = ctx
	}
	if fault("logs-arguments") {
		fmt.Fprintf(os.Stderr, "faulty: %s %s\n", d.Name, d.Arguments)
	}
	d.log("start")
	done := make(chan string, 1)
	go func() {
		members := d.run(limited)
		if limited.Err() != nil {
			d.log("cancelled")
		} else {
			d.log("end")
		}
		done <- members
	}()
	select {
	case members := <-done:
		if limited.Err() == nil {
			return members
		}
	case <-limited.Done():
	}
	if ctx.Err() != nil {
		return ""
	}
	return failure(cause, "timed out")
}

// lookUp asks until somebody answers.
func (d *delivery) lookUp(ctx context.Context) string {
	body := quoteValue(map[string]string{"session_id": d.Session, "turn_id": d.Turn, "call_id": d.Call, "nonce": d.nonce})
	for ctx.Err() == nil {
		var answer struct{ Standing string }
		reply, err := d.w.nc.Request("fn.outcome."+token(d.Name), body, 2*time.Second)
		if err == nil {
			err = json.Unmarshal(reply.Data, &answer)
		}
		known := slices.Contains([]string{"pending", "unknown", "answered", "cancelled"}, answer.Standing)
		if err == nil && (known || answer.Standing != "" && fault("takes-any-standing")) || fault("asks-once") {
			return answer.Standing
		}
		pause(ctx, 100*time.Millisecond)
	}
	return "cancelled"
}

func (d *delivery) settle(members string) {
	if members != "" && fault("acks-first") {
		_ = d.m.Ack()
	}
	if members != "" && !d.report(members) {
		return
	}
	if members == "" && fault("forgets-ack") {
		return
	}
	if fault("naks") {
		_ = d.m.Nak()
		return
	}
	_ = d.m.Ack()
}

// report publishes the outcome until it is stored.
func (d *delivery) report(members string) bool {
	kind := strings.Trim(members[:strings.IndexByte(members, ':')], `"`)
	switch {
	case strings.HasPrefix(members, `"success":false`):
		kind = "failure"
	case kind == "released":
		kind += "." + strconv.Itoa(d.handover)
	}
	id := d.nonce + "." + kind
	if fault("random-id") {
		id = nats.NewInbox()
	}
	m := &nats.Msg{
		Subject: d.subject, Header: nats.Header{"Nats-Msg-Id": {id}, "Fn-Protocol": {"1"}},
		Data: fmt.Appendf(nil, `{"session_id":%s,"turn_id":%s,"call_id":%s,"nonce":%s,%s}`, quote(d.Session), quote(d.Turn), quote(d.Call), quote(d.nonce), members),
	}
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_, err := d.w.js.PublishMsg(ctx, m)
		cancel()
		switch {
		case err == nil:
			return true
		case errors.Is(err, nats.ErrMaxPayload) && !fault("drops-large"):
			return d.report(failure("too_large", "result too large"))
		case errors.Is(err, nats.ErrMaxPayload), fault("reports-once"):
			return true
		}
		pause(context.Background(), 100*time.Millisecond)
	}
}
