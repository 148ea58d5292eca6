package simulator

import (
	"fmt"
	"slices"
)

// FaultKind names something that goes wrong.
type FaultKind string

// The kinds of [FaultRule].
const (
	// FaultNone is no fault.
	FaultNone FaultKind = ""
	// FaultRateLimited answers 429, with Retry-After if the rule has one.
	FaultRateLimited FaultKind = "rate_limited"
	// FaultInternalError answers 500.
	FaultInternalError FaultKind = "internal_error"
	// FaultUnavailable answers 503, with Retry-After if the rule has one.
	FaultUnavailable FaultKind = "unavailable"
	// FaultBadGateway answers 502 with an HTML page, as a proxy would.
	FaultBadGateway FaultKind = "bad_gateway"
	// FaultResponseLost does the request and closes the connection without an answer. Go's HTTP transport repeats a
	// POST that has an Idempotency-Key and was lost on a reused connection by itself: its caller then sees the replay.
	FaultResponseLost FaultKind = "response_lost"
	// FaultAcceptedLost answers a good POST of events with 202 and does not apply it.
	FaultAcceptedLost FaultKind = "accepted_lost"
	// FaultStreamCut closes an event stream in the middle of a frame; each frame is one chance.
	FaultStreamCut FaultKind = "stream_cut"
	// FaultStreamError sends an error frame instead of an event and ends the stream; each frame is one chance.
	FaultStreamError FaultKind = "stream_error"
)

var faultKinds = []FaultKind{
	FaultRateLimited, FaultInternalError, FaultUnavailable, FaultBadGateway, FaultResponseLost, FaultAcceptedLost,
	FaultStreamCut, FaultStreamError,
}

// Endpoint is a class of API requests that faults and counts speak of.
type Endpoint string

// The endpoint classes.
const (
	EndpointSessionCreate Endpoint = "session_create"
	EndpointSessionGet    Endpoint = "session_get"
	EndpointSessionList   Endpoint = "session_list"
	EndpointSessionUpdate Endpoint = "session_update"
	EndpointSessionDelete Endpoint = "session_delete"
	EndpointEventsPost    Endpoint = "events_post"
	EndpointStream        Endpoint = "stream"
	EndpointHistory       Endpoint = "history" // items, turns, subagents and the like
	EndpointOther         Endpoint = "other"   // agents, webhook endpoints

	EndpointResponseCreate Endpoint = "response_create" // streamed or not
	EndpointResponseGet    Endpoint = "response_get"
	EndpointResponseCancel Endpoint = "response_cancel"
	EndpointResponseStream Endpoint = "response_stream" // the frames of responses' streams
	EndpointResponseOther  Endpoint = "response_other"  // deletion, input items, conversations
)

var endpoints = [...]Endpoint{
	EndpointSessionCreate, EndpointSessionGet, EndpointSessionList, EndpointSessionUpdate, EndpointSessionDelete,
	EndpointEventsPost, EndpointStream, EndpointHistory, EndpointOther,
	EndpointResponseCreate, EndpointResponseGet, EndpointResponseCancel, EndpointResponseStream, EndpointResponseOther,
}

// FaultRule makes one kind of fault happen. A rule lets its first Skip chances pass, strikes the Next chances after
// them, and then each further one with probability Rate.
type FaultRule struct {
	Kind FaultKind `json:"kind"`
	// Endpoint restricts the rule; empty means everywhere the kind makes sense.
	Endpoint Endpoint `json:"endpoint,omitempty"`
	Skip     int      `json:"skip,omitempty"`
	Next     int      `json:"next,omitempty"`
	Rate     float64  `json:"rate,omitempty"`
	// RetryAfter is sent as it is, so seconds, fractions and dates are possible. Empty sends none.
	RetryAfter string `json:"retry_after,omitempty"`
}

// Span is a range of milliseconds; a value is drawn evenly from it. The zero span is no delay.
type Span struct {
	MinMS int `json:"min_ms,omitempty"`
	MaxMS int `json:"max_ms,omitempty"`
}

// RefusedCall makes the results of a call answered with 400, whatever they are.
type RefusedCall struct {
	// CallID or Function chooses the call.
	CallID   string `json:"call_id,omitempty"`
	Function string `json:"function,omitempty"`
	// Unnamed leaves the call id out of the error message.
	Unnamed bool `json:"unnamed,omitempty"`
	// Next is how many times; zero means always.
	Next int `json:"next,omitempty"`
}

// Faults is what goes wrong. The zero value is a healthy server.
type Faults struct {
	// Seed makes the draws repeatable; zero draws a seed.
	Seed uint64 `json:"seed,omitempty"`
	// Latency delays every request, or those of LatencyEndpoints, before it is served.
	Latency          Span       `json:"latency,omitzero"`
	LatencyEndpoints []Endpoint `json:"latency_endpoints,omitempty"`
	// Rules are tried in order; the first that strikes decides.
	Rules []FaultRule `json:"rules,omitempty"`
	// ListedAfterAccept keeps an accepted result from being applied for so long: its call stays in
	// required_actions and the turn waits.
	ListedAfterAccept Span `json:"listed_after_accept,omitzero"`
	// RegistrationDelay refuses results as "Unknown pending tool call" for so long after their call was listed.
	RegistrationDelay Span `json:"registration_delay,omitzero"`
	// RefuseCalls names calls whose results are refused.
	RefuseCalls []RefusedCall `json:"refuse_calls,omitempty"`
	// AcceptedLostKeepsKey remembers the Idempotency-Key of a POST lost by FaultAcceptedLost, so that only a POST
	// under another key gets through. False forgets it with the POST.
	AcceptedLostKeepsKey bool `json:"accepted_lost_keeps_key,omitempty"`
}

func (f *Faults) validate() error {
	for _, span := range []struct {
		field string
		Span
	}{
		{"Latency", f.Latency},
		{"ListedAfterAccept", f.ListedAfterAccept},
		{"RegistrationDelay", f.RegistrationDelay},
	} {
		if span.MinMS < 0 || span.MaxMS < span.MinMS {
			return fmt.Errorf("simulator: Faults.%s must be 0 <= min <= max milliseconds (got %d to %d)",
				span.field, span.MinMS, span.MaxMS)
		}
	}
	for i, rule := range f.Rules {
		switch {
		case !slices.Contains(faultKinds, rule.Kind):
			return fmt.Errorf("simulator: Faults.Rules[%d].Kind is %q: use one of %q", i, rule.Kind, faultKinds)
		case rule.Endpoint != "" && !slices.Contains(endpoints[:], rule.Endpoint):
			return fmt.Errorf("simulator: Faults.Rules[%d].Endpoint is %q: use one of %q", i, rule.Endpoint, endpoints)
		case rule.Rate < 0 || rule.Rate > 1:
			return fmt.Errorf("simulator: Faults.Rules[%d].Rate is %g: use 0 to 1", i, rule.Rate)
		case rule.Skip < 0 || rule.Next < 0:
			return fmt.Errorf("simulator: Faults.Rules[%d]: Skip and Next must not be negative", i)
		}
	}
	for _, endpoint := range f.LatencyEndpoints {
		if !slices.Contains(endpoints[:], endpoint) {
			return fmt.Errorf("simulator: Faults.LatencyEndpoints has %q: use some of %q", endpoint, endpoints)
		}
	}
	for i, refused := range f.RefuseCalls {
		if (refused.CallID == "") == (refused.Function == "") {
			return fmt.Errorf("simulator: Faults.RefuseCalls[%d] needs either CallID or Function", i)
		}
	}
	return nil
}
