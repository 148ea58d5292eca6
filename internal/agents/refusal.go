package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/callfan/callfan/pkg/call"
)

const requestIDHeader = "X-Request-Id"

// maxMessage bounds what is kept of the API's messages: they may quote outputs.
const maxMessage = 400

// noted is a refusal with everything but its class.
func (c *Client) noted(a answer, err error) *call.Refusal {
	return &call.Refusal{
		Class:      call.RefusedBusy,
		RetryAfter: retryAfter(a.header),
		Status:     a.status,
		RequestID:  a.header.Get(requestIDHeader),
		Err:        err,
	}
}

// unreadable is the refusal for an answer below 400 that is not what was asked
// for: something else than the API answered, or it was cut.
func (c *Client) unreadable(a answer, err error) *call.Refusal {
	return c.noted(a, fmt.Errorf("unexpected answer: %w", err))
}

// refusal reads what became of a request that is not a submission. err is the
// official client's error; it is only used where no answer arrived, because it
// loses the status of answers that it cannot decode.
func (c *Client) refusal(a answer, err error) *call.Refusal {
	switch {
	case a.status < http.StatusMultipleChoices: // none, or cut
		if err == nil {
			err = errors.New("empty answer")
		}
		return c.noted(a, c.cleanError(err))
	case a.status < http.StatusBadRequest:
		return c.unreadable(a, errors.New("a redirect; check the base URL"))
	}
	said, enveloped := readEnvelope(a.body)
	message := http.StatusText(a.status)
	if !enveloped {
		message = "the answer is not the API's: " + message
	}
	r := c.noted(a, errors.New(c.clean(said.describe(message))))
	r.Code = said.code
	r.Class = classify(a.status, said, enveloped)
	return r
}

// submitRefusal reads what became of a submission.
func (c *Client) submitRefusal(a answer, err error, batch call.Batch) *call.Refusal {
	r := c.refusal(a, err)
	if a.status < http.StatusBadRequest {
		return r
	}
	said, enveloped := readEnvelope(a.body)
	switch {
	case enveloped && unknownPending(a.status, said.message):
		r.Class = call.RefusedUnknownCall
	case a.status == http.StatusConflict:
		r.Class = call.RefusedConflict
	}
	switch r.Class {
	case call.RefusedUnknownCall, call.RefusedConflict, call.RefusedInvalid, call.RefusedTooLarge:
		r.CallID = named(said.message, batch.Answers)
	}
	return r
}

// classify sorts an answer of 400 and above by what has to be done. An answer
// without the API's envelope came from something in between (a proxy, a wrong
// address): it must not condemn a batch or a session.
func classify(status int, said apiError, enveloped bool) call.RefusalClass {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return call.RefusedAuth
	case status == http.StatusRequestEntityTooLarge:
		return call.RefusedTooLarge
	case !enveloped:
		return call.RefusedBusy
	case said.code == "invalid_beta": // nothing in a batch can cure it, an operator can
		return call.RefusedAuth
	case status == http.StatusNotFound:
		if strings.HasPrefix(said.message, "Invalid URL") { // the base URL is wrong, not the session gone
			return call.RefusedBusy
		}
		return call.RefusedGone
	case status == http.StatusBadRequest, status == http.StatusUnprocessableEntity:
		if tooLarge(said) {
			return call.RefusedTooLarge
		}
		return call.RefusedInvalid
	default:
		return call.RefusedBusy
	}
}

// unknownPending recognises the one message of the API that has a meaning of its
// own. The official clients compare it as a whole; OpenAgentCore leaves the id out.
func unknownPending(status int, message string) bool {
	return (status == http.StatusBadRequest || status == http.StatusNotFound) &&
		strings.HasPrefix(message, "Unknown pending tool call")
}

// tooLarge recognises a size limit: the API has no code of its own for it.
func tooLarge(said apiError) bool {
	if slices.Contains([]string{"request_too_large", "payload_too_large", "string_above_max_length"}, said.code) {
		return true
	}
	message := strings.ToLower(said.message)
	return slices.ContainsFunc([]string{"too large", "too long", "maximum length", "maximum size", "size limit"},
		func(s string) bool { return strings.Contains(message, s) })
}

// named is the id of the one call of the batch that the message names; empty
// when it names none or several.
func named(message string, answers []call.Answer) string {
	if _, rest, ok := strings.Cut(message, "Unknown pending tool call: "); ok {
		if slices.ContainsFunc(answers, func(a call.Answer) bool { return a.Call == rest }) {
			return rest
		}
	}
	found := ""
	for _, a := range answers {
		if a.Call == found || !distinctive(a.Call) || !mentions(message, a.Call) {
			continue
		}
		if found != "" {
			return ""
		}
		found = a.Call
	}
	return found
}

// distinctive says whether an id cannot be mistaken for a word of a sentence.
func distinctive(id string) bool { return len(id) >= 4 && strings.ContainsAny(id, "0123456789_-") }

// mentions says whether the message contains id as a whole: call_1 is not
// mentioned by a message about call_10.
func mentions(message, id string) bool {
	for from := 0; ; {
		i := strings.Index(message[from:], id)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(id)
		if (start == 0 || !idByte(message[start-1])) && (end == len(message) || !idByte(message[end])) {
			return true
		}
		from = start + 1
	}
}

func idByte(b byte) bool {
	return b == '_' || b == '-' || ('0' <= b && b <= '9') || ('a' <= b && b <= 'z') || ('A' <= b && b <= 'Z')
}

// apiError is the API's error envelope.
type apiError struct{ code, kind, message string }

// readEnvelope reads {"error":{…}}. It reports false for anything else; what can
// be had of {"error":"text"} is in the message all the same.
func readEnvelope(body []byte) (said apiError, enveloped bool) {
	var wire struct {
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(body, &wire); err != nil || len(wire.Error) == 0 {
		return apiError{}, false
	}
	return readError(wire.Error), wire.Error[0] == '{'
}

func readError(raw json.RawMessage) apiError {
	var wire struct{ Code, Type, Message json.RawMessage }
	if json.Unmarshal(raw, &wire) != nil {
		return apiError{message: text(raw)}
	}
	return apiError{code: text(wire.Code), kind: text(wire.Type), message: text(wire.Message)}
}

// text is a JSON string's value, nothing for null, and other values as they are:
// an error must not fail to be read because its code is a number.
func text(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

func (e apiError) describe(otherwise string) string {
	switch {
	case e.message != "":
		return e.message
	case e.kind != "":
		return e.kind
	default:
		return otherwise
	}
}

// clean makes a message of the API fit for a log.
func (c *Client) clean(message string) string {
	message = strings.ReplaceAll(message, c.key, "[API key]")
	if len(message) > maxMessage {
		message = message[:maxMessage] + "…"
	}
	return strings.ToValidUTF8(message, "\uFFFD")
}

// cleanError hides the key in errors of the transport, which should never hold
// it; those that do not are kept whole, for errors.Is.
func (c *Client) cleanError(err error) error {
	if strings.Contains(err.Error(), c.key) {
		return errors.New(c.clean(err.Error()))
	}
	return err
}
