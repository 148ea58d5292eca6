package queue

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/callfan/callfan/pkg/call"
)

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
	memberUncertain
	memberRerun
	memberExecutor
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
	case "uncertain":
		return memberUncertain
	case "rerun":
		return memberRerun
	case "executor":
		return memberExecutor
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
	case memberUncertain:
		err = d.readUncertain(value)
	case memberExecutor:
		// No outcome is refused because of a name that only people read.
		if name, bad := decodeString(value); bad == nil && name == executorName(name) {
			o.Executor = name
		}
	case memberReleased, memberDeferred, memberRerun:
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
			d.outcome.Reason, err = decodeReason(value)
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

func (d *outcomeDecoder) readUncertain(value []byte) error {
	if value[0] != '{' {
		return errors.New("not an object")
	}
	return members(value, func(name, value []byte) (err error) {
		if string(name) == "reason" {
			if d.outcome.Reason, err = decodeReason(value); err != nil {
				return fmt.Errorf("reason: %w", err)
			}
		}
		return nil
	})
}

func decodeReason(value []byte) (string, error) {
	reason, err := decodeString(value)
	if len(reason) > maxReason {
		return "", fmt.Errorf("longer than %d bytes", maxReason)
	}
	return reason, err
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
	rest := d.seen &^ (ids | memberExecutor) // the name goes with every kind
	switch {
	case rest == memberSuccess|memberOutput && d.success:
		d.outcome.Kind = call.Success
	case rest&^memberCause == memberSuccess|memberError && !d.success:
		d.outcome.Kind = call.Failure
	case rest == memberRetry:
		d.outcome.Kind = call.Retry
	case rest == memberUncertain:
		d.outcome.Kind = call.Uncertain
	case rest == memberReleased:
		d.outcome.Kind = call.Released
	case rest == memberDeferred:
		d.outcome.Kind = call.Deferred
	case rest == memberRerun:
		d.outcome.Kind = call.Rerun
	case rest == 0:
		return errors.New("none of success, retry, uncertain, released, deferred and rerun is there")
	case rest&memberSuccess != 0 && d.success && rest&memberOutput == 0:
		return errors.New("success without output")
	case rest&memberSuccess != 0 && !d.success && rest&memberError == 0:
		return errors.New("failure without error")
	default:
		return errors.New("members of more than one kind of outcome are mixed")
	}
	return nil
}
