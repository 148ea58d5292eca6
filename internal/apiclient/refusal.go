package apiclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/callfan/callfan/pkg/call"
)

// maxMessage bounds what is kept of the API's messages: they may quote outputs.
const maxMessage = 400

// Said is the refusal for an error that the API told; its class, busy, is for the caller
// to set. The text is the API's own, or else the one given.
func (c *Client) Said(a Answer, said Error, otherwise string) *call.Refusal {
	r := c.noted(a, errors.New(c.clean(said.describe(otherwise))))
	r.Code, r.Param = said.Code, said.Param
	return r
}

// noted is a busy refusal without the API's words.
func (c *Client) noted(a Answer, err error) *call.Refusal {
	return &call.Refusal{
		Class:      call.RefusedBusy,
		RetryAfter: retryAfter(a.Header),
		Status:     a.Status,
		RequestID:  a.Header.Get(RequestIDHeader),
		Err:        err,
	}
}

// Unreadable is the refusal for an answer below 400 that is not what was asked
// for: something else than the API answered, or it was cut.
func (c *Client) Unreadable(a Answer, err error) *call.Refusal {
	return c.noted(a, fmt.Errorf("unexpected answer: %w", err))
}

// Refusal reads what became of a request. err is the
// official client's error; it is only used where no answer arrived, because it
// loses the status of answers that it cannot decode.
func (c *Client) Refusal(a Answer, err error) *call.Refusal {
	switch {
	case a.Status < http.StatusMultipleChoices: // none, or cut
		if err == nil {
			err = errors.New("empty answer")
		}
		return c.noted(a, c.cleanError(err))
	case a.Status < http.StatusBadRequest:
		return c.Unreadable(a, errors.New("a redirect; check the base URL"))
	}
	said, enveloped := ReadEnvelope(a.Body)
	message := http.StatusText(a.Status)
	if !enveloped {
		message = "the answer is not the API's: " + message
	}
	r := c.Said(a, said, message)
	r.Class = classify(a.Status, said, enveloped)
	return r
}

// classify sorts an answer of 400 and above by what has to be done. An answer
// without the API's envelope came from something in between (a proxy, a wrong
// address): it must not condemn a batch or a session.
func classify(status int, said Error, enveloped bool) call.RefusalClass {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return call.RefusedAuth
	case status == http.StatusRequestEntityTooLarge:
		return call.RefusedTooLarge
	case !enveloped:
		return call.RefusedBusy
	case said.Code == "invalid_beta": // nothing in a batch can cure it, an operator can
		return call.RefusedAuth
	case status == http.StatusNotFound:
		if strings.HasPrefix(said.Message, "Invalid URL") { // the base URL is wrong, not the session gone
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

// tooLarge recognises a size limit: the API has no code of its own for it.
func tooLarge(said Error) bool {
	if slices.Contains([]string{"request_too_large", "payload_too_large", "string_above_max_length"}, said.Code) {
		return true
	}
	message := strings.ToLower(said.Message)
	return slices.ContainsFunc([]string{"too large", "too long", "maximum length", "maximum size", "size limit"},
		func(s string) bool { return strings.Contains(message, s) })
}

// Error is what the API says about a refusal or a failure.
type Error struct {
	// Code is the machine word, Type its sort.
	Code, Type string
	// Message is for people.
	Message string
	// Param is the member of the request that the error is about.
	Param string
}

// ReadEnvelope reads {"error":{…}}. It reports false for anything else; what can
// be had of {"error":"text"} is in the message all the same.
func ReadEnvelope(body []byte) (said Error, enveloped bool) {
	var wire struct {
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(body, &wire); err != nil || len(wire.Error) == 0 {
		return Error{}, false
	}
	return ReadError(wire.Error), wire.Error[0] == '{'
}

// ReadError reads the object of an error; of anything else the text is the message.
func ReadError(raw json.RawMessage) Error {
	var wire struct{ Code, Type, Message, Param json.RawMessage }
	if json.Unmarshal(raw, &wire) != nil {
		return Error{Message: text(raw)}
	}
	return Error{Code: text(wire.Code), Type: text(wire.Type), Message: text(wire.Message), Param: text(wire.Param)}
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

func (e Error) describe(otherwise string) string {
	switch {
	case e.Message != "":
		return e.Message
	case e.Type != "":
		return e.Type
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
