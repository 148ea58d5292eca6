package queue

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/callfan/callfan/pkg/call"
)

// validNonce says whether s is 1 to 128 of [A-Za-z0-9_-].
func validNonce(s string) bool {
	for i := range len(s) {
		if c := s[i]; !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= 128
}

// validTraceparent says whether s has the form of a W3C trace context, version 00
// or later: 2, 32, 16 and 2 hexadecimal digits.
func validTraceparent(s string) bool {
	if len(s) != 55 {
		return false
	}
	for i := range len(s) {
		dash := i == 2 || i == 35 || i == 52
		if c := s[i]; dash != (c == '-') || !dash && !(c >= 'a' && c <= 'f' || c >= '0' && c <= '9') {
			return false
		}
	}
	return true
}

// validOnUncertain says whether the choice is known; empty leaves it to the executor.
func validOnUncertain(choice call.OnUncertain) bool {
	switch choice {
	case "", call.UncertainRerun, call.UncertainVerify, call.UncertainFail, call.UncertainPark:
		return true
	}
	return false
}

// encodeCall builds the message of a hand-over. Its errors are final.
func (n names) encodeCall(d *call.Dispatch) (*nats.Msg, error) {
	token, err := functionToken(d.Function)
	if err != nil {
		return nil, err
	}
	switch {
	case d.Session == "" || d.Turn == "" || d.Call.Call == "":
		return nil, fmt.Errorf("%w %s: an id is empty", ErrInvalidCall, d.Key)
	case !validNonce(d.Nonce):
		return nil, fmt.Errorf("%w %s: the nonce is not a token of 1 to 128 characters", ErrInvalidCall, d.Key)
	case d.Attempt < 1 || d.Handover < 1:
		return nil, fmt.Errorf("%w %s: attempt %d and handover %d must be at least 1", ErrInvalidCall, d.Key, d.Attempt, d.Handover)
	case d.Partition < 0:
		return nil, fmt.Errorf("%w %s: partition %d is negative", ErrInvalidCall, d.Key, d.Partition)
	case !validOnUncertain(d.OnUncertain):
		return nil, fmt.Errorf("%w %s: on_uncertain is %q; use rerun, verify, fail, park or nothing", ErrInvalidCall, d.Key, d.OnUncertain)
	case len(d.Arguments) > 0 && !json.Valid(d.Arguments):
		return nil, fmt.Errorf("%w %s: the arguments are not JSON", ErrInvalidCall, d.Key)
	}
	return &nats.Msg{Subject: n.call(token), Header: n.callHeader(d, token), Data: appendCall(nil, &d.Call)}, nil
}

func (n names) callHeader(d *call.Dispatch, token string) nats.Header {
	h := newHeaderSet(15)
	id := d.MessageID()
	h.add(headerMessageID, id)
	h.add(headerProtocol, Protocol)
	h.add(headerKey, d.Key.String())
	h.add(headerAttempt, strconv.Itoa(d.Attempt))
	h.add(headerHandover, strconv.Itoa(d.Handover))
	h.add(headerResultSubject, n.result(token, d.Partition))
	h.add(headerNonce, d.Nonce)
	// The message id begins with the hash of the key; hashing again would cost more
	// than everything else here.
	hash, _, _ := strings.Cut(id, ".")
	h.add(headerIdempotencyKey, "call_"+hash)
	if d.Timeout > 0 {
		h.add(headerTimeout, millis(d.Timeout))
	}
	if !d.Deadline.IsZero() {
		h.add(headerTTL, expiry(d.Deadline, time.Now()))
		h.add(headerDeadline, strconv.FormatInt(d.Deadline.UnixMilli(), 10))
	}
	if validTraceparent(d.Traceparent) {
		h.add(headerTraceparent, d.Traceparent)
	}
	if d.Uncertain {
		h.add(headerUncertain, "1")
	}
	if d.OnUncertain != "" {
		h.add(headerOnUncertain, string(d.OnUncertain))
	}
	return h.header
}

// appendCall appends the required action with the session's id. The arguments are
// copied byte by byte.
func appendCall(dst []byte, c *call.Call) []byte {
	if dst == nil {
		dst = make([]byte, 0, 128+len(c.Session)+len(c.Turn)+len(c.Key.Call)+len(c.Function)+len(c.Arguments))
	}
	dst = append(dst, `{"type":"function_call","session_id":`...)
	dst = appendString(dst, c.Session)
	dst = append(dst, `,"turn_id":`...)
	dst = appendString(dst, c.Turn)
	dst = append(dst, `,"call_id":`...)
	dst = appendString(dst, c.Key.Call)
	dst = append(dst, `,"name":`...)
	dst = appendString(dst, c.Function)
	dst = append(dst, `,"arguments":`...)
	if len(c.Arguments) == 0 {
		dst = append(dst, "{}"...)
	} else {
		dst = append(dst, c.Arguments...)
	}
	return append(dst, '}')
}

// decodeCall reads the message of a hand-over.
func (n names) decodeCall(m *nats.Msg) (call.Dispatch, error) {
	var d call.Dispatch
	if v := header(m.Header, headerProtocol); v != Protocol {
		return d, fmt.Errorf("protocol %q; this executor speaks %s", v, Protocol)
	}
	if err := decodeCallPayload(m.Data, &d.Call); err != nil {
		return d, err
	}
	token := lastToken(m.Subject)
	if call.Token(d.Function) != token {
		return d, fmt.Errorf("the call is for function %q but came on %q", d.Function, m.Subject)
	}
	return d, n.decodeCallHeader(m.Header, token, &d)
}

func decodeCallPayload(body []byte, c *call.Call) error {
	err := members(body, func(name, value []byte) (err error) {
		switch string(name) {
		case "session_id":
			c.Session, err = decodeString(value)
		case "turn_id":
			c.Turn, err = decodeString(value)
		case "call_id":
			c.Key.Call, err = decodeString(value)
		case "name":
			c.Function, err = decodeString(value)
		case "arguments":
			c.Arguments = value
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case c.Session == "" || c.Turn == "" || c.Key.Call == "":
		return errors.New("session_id, turn_id or call_id is missing")
	case c.Function == "":
		return errors.New("name is missing")
	}
	return nil
}

func (n names) decodeCallHeader(h nats.Header, token string, d *call.Dispatch) error {
	var err error
	number := func(name string, least int64) int64 {
		v, parseErr := strconv.ParseInt(header(h, name), 10, 64)
		if (parseErr != nil || v < least) && err == nil {
			err = fmt.Errorf("header %s is %q", name, header(h, name))
		}
		return v
	}
	d.Attempt = int(number(headerAttempt, 1))
	d.Handover = int(number(headerHandover, 1))
	if header(h, headerTimeout) != "" {
		d.Timeout = time.Duration(number(headerTimeout, 1)) * time.Millisecond
	}
	if header(h, headerDeadline) != "" {
		d.Deadline = time.UnixMilli(number(headerDeadline, 1))
	}
	if err != nil {
		return err
	}
	subjectToken, partition, ok := n.parseResult(header(h, headerResultSubject))
	if !ok || subjectToken != token {
		return fmt.Errorf("header %s is %q, not a result subject of this function", headerResultSubject, header(h, headerResultSubject))
	}
	d.Partition = partition
	d.Nonce = header(h, headerNonce)
	if !validNonce(d.Nonce) {
		return fmt.Errorf("header %s is missing or malformed", headerNonce)
	}
	d.Traceparent = header(h, headerTraceparent)
	d.Uncertain = header(h, headerUncertain) == "1"
	d.OnUncertain = call.OnUncertain(header(h, headerOnUncertain))
	if !validOnUncertain(d.OnUncertain) { // a choice that is not understood must not end in a second run
		return fmt.Errorf("header %s is %q", headerOnUncertain, d.OnUncertain)
	}
	return nil
}
