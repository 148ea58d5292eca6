package queue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/callfan/callfan/pkg/call"
)

// Limits of an outcome's small parts; the output is bounded by max_payload alone.
const (
	maxID     = 1 << 10
	maxReason = 64 << 10
	maxAfter  = 7 * 24 * time.Hour
)

var validCause = regexp.MustCompile(`^[a-z_]{1,32}$`)

// encodeOutcome builds the message that answers a hand-over. Its errors are final.
func (n names) encodeOutcome(d *call.Dispatch, o *call.Outcome) (*nats.Msg, error) {
	token, err := functionToken(d.Function)
	if err != nil {
		return nil, err
	}
	if !validNonce(d.Nonce) {
		return nil, fmt.Errorf("%w of %s: the hand-over has no usable nonce", ErrInvalidOutcome, d.Key)
	}
	data, err := appendOutcome(nil, d, o)
	if err != nil {
		return nil, fmt.Errorf("%w of %s: %w", ErrInvalidOutcome, d.Key, err)
	}
	h := newHeaderSet(2)
	h.add(headerMessageID, outcomeID(d, o.Kind))
	h.add(headerProtocol, Protocol)
	return &nats.Msg{Subject: n.result(token, d.Partition), Header: h.header, Data: data}, nil
}

// outcomeID is the same for a repeated outcome. A call may be released more than
// once in one attempt, each time from another hand-over.
func outcomeID(d *call.Dispatch, kind call.Kind) string {
	id := d.Nonce + "." + string(kind)
	if kind == call.Released {
		id += "." + strconv.Itoa(d.Handover)
	}
	return id
}

func appendOutcome(dst []byte, d *call.Dispatch, o *call.Outcome) ([]byte, error) {
	if dst == nil {
		dst = make([]byte, 0, 160+len(d.Session)+len(d.Turn)+len(d.Call.Call)+len(d.Nonce)+len(o.Output)+len(o.Error)+len(o.Reason))
	}
	dst = append(dst, `{"session_id":`...)
	dst = appendString(dst, d.Session)
	dst = append(dst, `,"turn_id":`...)
	dst = appendString(dst, d.Turn)
	dst = append(dst, `,"call_id":`...)
	dst = appendString(dst, d.Call.Call)
	dst = append(dst, `,"nonce":`...)
	dst = appendString(dst, d.Nonce)
	switch o.Kind {
	case call.Success:
		output := o.Output
		if len(output) == 0 {
			output = json.RawMessage("null")
		}
		if !json.Valid(output) {
			return nil, errors.New("the output is not JSON")
		}
		if err := checkOutput(output); err != nil {
			return nil, err
		}
		dst = append(dst, `,"success":true,"output":`...)
		dst = append(dst, output...)
	case call.Failure:
		dst = append(dst, `,"success":false,"error":`...)
		dst = appendString(dst, o.Error)
		if o.Cause != "" {
			if !validCause.MatchString(o.Cause) {
				return nil, fmt.Errorf("the cause %q does not match %s", o.Cause, validCause)
			}
			dst = append(dst, `,"cause":`...)
			dst = appendString(dst, o.Cause)
		}
	case call.Retry:
		dst = append(dst, `,"retry":{"reason":`...)
		dst = appendString(dst, o.Reason[:min(len(o.Reason), maxReason)])
		dst = append(dst, `,"after_ms":`...)
		dst = strconv.AppendInt(dst, min(max(o.After, 0), maxAfter).Milliseconds(), 10)
		dst = append(dst, '}')
	case call.Released, call.Deferred:
		dst = append(dst, ',', '"')
		dst = append(dst, o.Kind...)
		dst = append(dst, `":true`...)
	default:
		return nil, fmt.Errorf("unknown kind %q", o.Kind)
	}
	return append(dst, '}'), nil
}

// checkOutput says what is wrong with an output that is known to be JSON.
func checkOutput(output []byte) error {
	trimmed := bytes.TrimLeft(output, " \t\r\n")
	if len(trimmed) > 0 {
		switch trimmed[0] {
		case '"', '[', 'n':
			return nil
		}
	}
	return errors.New("output must be a JSON string, an array of content parts or null")
}

// decodeOutcome reads an outcome. The error says what is wrong with it.
func decodeOutcome(m *nats.Msg) (call.Outcome, error) {
	if v := header(m.Header, headerProtocol); v != "" && v != Protocol {
		return call.Outcome{}, fmt.Errorf("protocol %q; this dispatcher speaks %s", v, Protocol)
	}
	var d outcomeDecoder
	if err := members(m.Data, d.member); err != nil {
		return call.Outcome{}, err
	}
	return d.outcome, d.check()
}

// outcomeDecoder collects the members of an outcome; a known member that comes
// twice is an error, since readers could disagree about which one counts.
type outcomeDecoder struct {
	outcome call.Outcome
	seen    outcomeMember
	success bool
}

type outcomeMember uint16

const (
	memberSession outcomeMember = 1 << iota
	memberTurn
	memberCall
	memberNonce
	memberSuccess
	memberOutput
	memberError
	memberCause
	memberRetry
	memberReleased
	memberDeferred
)

func memberNamed(name []byte) outcomeMember {
	switch string(name) {
	case "session_id":
		return memberSession
	case "turn_id":
		return memberTurn
	case "call_id":
		return memberCall
	case "nonce":
		return memberNonce
	case "success":
		return memberSuccess
	case "output":
		return memberOutput
	case "error":
		return memberError
	case "cause":
		return memberCause
	case "retry":
		return memberRetry
	case "released":
		return memberReleased
	case "deferred":
		return memberDeferred
	default:
		return 0
	}
}

func (d *outcomeDecoder) member(name, value []byte) error {
	m := memberNamed(name)
	if m == 0 {
		return nil
	}
	if d.seen&m != 0 {
		return fmt.Errorf("member %q comes twice", name)
	}
	d.seen |= m
	if err := d.read(m, value); err != nil {
		return fmt.Errorf("member %q: %w", name, err)
	}
	return nil
}

func (d *outcomeDecoder) read(m outcomeMember, value []byte) (err error) {
	o := &d.outcome
	switch m {
	case memberSession:
		o.Session, err = decodeID(value)
	case memberTurn:
		o.Turn, err = decodeID(value)
	case memberCall:
		o.Call, err = decodeID(value)
	case memberNonce:
		o.Nonce, err = decodeID(value)
	case memberSuccess:
		d.success = string(value) == "true"
		if !d.success && string(value) != "false" {
			err = errors.New("not true or false")
		}
	case memberOutput:
		o.Output, err = value, checkOutput(value)
	case memberError:
		o.Error, err = decodeString(value)
	case memberCause:
		if o.Cause, err = decodeString(value); err == nil && !validCause.MatchString(o.Cause) {
			err = fmt.Errorf("does not match %s", validCause)
		}
	case memberRetry:
		err = d.readRetry(value)
	case memberReleased, memberDeferred:
		if string(value) != "true" {
			err = errors.New("not true")
		}
	}
	return err
}

func (d *outcomeDecoder) readRetry(value []byte) error {
	if value[0] != '{' {
		return errors.New("not an object")
	}
	return members(value, func(name, value []byte) (err error) {
		switch string(name) {
		case "reason":
			d.outcome.Reason, err = decodeString(value)
			if len(d.outcome.Reason) > maxReason {
				err = fmt.Errorf("longer than %d bytes", maxReason)
			}
		case "after_ms":
			var ms int64
			ms, err = strconv.ParseInt(string(value), 10, 64)
			if err != nil || ms < 0 || ms > maxAfter.Milliseconds() {
				err = fmt.Errorf("not a whole number from 0 to %d", maxAfter.Milliseconds())
			}
			d.outcome.After = time.Duration(ms) * time.Millisecond
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

func decodeID(value []byte) (string, error) {
	id, err := decodeString(value)
	switch {
	case err != nil:
		return "", err
	case id == "":
		return "", errors.New("empty")
	case len(id) > maxID:
		return "", fmt.Errorf("longer than %d bytes", maxID)
	}
	return id, nil
}

// check decides the kind: exactly one, with its parts and no others'.
func (d *outcomeDecoder) check() error {
	const ids = memberSession | memberTurn | memberCall | memberNonce
	if d.seen&ids != ids {
		return errors.New("session_id, turn_id, call_id or nonce is missing")
	}
	rest := d.seen &^ ids
	switch {
	case rest == memberSuccess|memberOutput && d.success:
		d.outcome.Kind = call.Success
	case rest&^memberCause == memberSuccess|memberError && !d.success:
		d.outcome.Kind = call.Failure
	case rest == memberRetry:
		d.outcome.Kind = call.Retry
	case rest == memberReleased:
		d.outcome.Kind = call.Released
	case rest == memberDeferred:
		d.outcome.Kind = call.Deferred
	case rest == 0:
		return errors.New("none of success, retry, released and deferred is there")
	case rest&memberSuccess != 0 && d.success && rest&memberOutput == 0:
		return errors.New("success without output")
	case rest&memberSuccess != 0 && !d.success && rest&memberError == 0:
		return errors.New("failure without error")
	default:
		return errors.New("members of more than one kind of outcome are mixed")
	}
	return nil
}
