package queue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/nats-io/nats.go"

	"github.com/callfan/callfan/pkg/call"
)

// Limits of an outcome's small parts; the output is bounded by max_payload alone.
const (
	maxID     = 1 << 10
	maxReason = 64 << 10
	maxAfter  = 7 * 24 * time.Hour
	// maxExecutor bounds the name of the executor, in bytes.
	maxExecutor = 128
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
	if name := executorName(o.Executor); name != "" {
		dst = append(dst, `,"executor":`...)
		dst = appendString(dst, name)
	}
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
	case call.Uncertain:
		dst = append(dst, `,"uncertain":{"reason":`...)
		dst = appendString(dst, o.Reason[:min(len(o.Reason), maxReason)])
		dst = append(dst, '}')
	case call.Released, call.Deferred, call.Rerun:
		dst = append(dst, ',', '"')
		dst = append(dst, o.Kind...)
		dst = append(dst, `":true`...)
	default:
		return nil, fmt.Errorf("unknown kind %q", o.Kind)
	}
	return append(dst, '}'), nil
}

// executorName is the printable part of a name, as far as it fits.
func executorName(name string) string {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, name)
	for end := maxExecutor; len(name) > maxExecutor; end-- {
		if utf8.RuneStart(name[end]) {
			name = name[:end]
		}
	}
	return name
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
