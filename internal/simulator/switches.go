package simulator

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Profile names a server whose undocumented choices the simulator imitates.
type Profile string

// The known profiles.
const (
	// ProfileOpenAI is the hosted service: live observations first, then the documentation.
	ProfileOpenAI Profile = "openai"
	// ProfileOpenAgentCore is the self-hosted server of the same API: 1–64 events and 1 MiB per POST, atomic
	// batches, errors that name no call, keep-alive comments.
	ProfileOpenAgentCore Profile = "openagentcore"
)

// Profiles lists the known profiles.
func Profiles() []Profile { return []Profile{ProfileOpenAI, ProfileOpenAgentCore} }

// ParseProfile returns the profile of that name; the empty name is [ProfileOpenAI]. An unknown name is an error that
// lists the known ones.
func ParseProfile(name string) (Profile, error) {
	if name == "" {
		return ProfileOpenAI, nil
	}
	if p := Profile(strings.ToLower(name)); slices.Contains(Profiles(), p) {
		return p, nil
	}
	return "", fmt.Errorf("simulator: unknown profile %q: use one of %q", name, Profiles())
}

// Switches are the choices of a server that its documentation leaves open, one field each. The doc comment of a field
// names the openai default; [Profile.Switches] returns a profile's values. A dispatcher must work with all of them.
type Switches struct {
	// CreateStatus is the status of a successful session creation: 201 (openai) or 200.
	CreateStatus int
	// EventsStatus is the status of an accepted POST of events: 202 (openai) or 204. The body is empty either way.
	EventsStatus int
	// BatchAtomic makes one refused event refuse its whole POST (openai: true). False applies the events before the
	// refused one and keeps them.
	BatchAtomic bool
	// DuplicateIdentical is the status for repeating the accepted result of a call: 202 (openai), 400 or 409.
	DuplicateIdentical int
	// DuplicateDifferent is the status for another result of an answered call: 409 (openai) or 400.
	DuplicateDifferent int
	// ResultAfterCancel is the status for the first result of a call whose turn was cancelled or failed: 409
	// (openai) or 400.
	ResultAfterCancel int
	// SameKeyOtherBody says what a used Idempotency-Key with another body does: "apply" (openai) treats it as new,
	// "ignore" answers 202 and drops it, "conflict" answers 409.
	SameKeyOtherBody string
	// MaxKeyBytes bounds the Idempotency-Key (openai: 256).
	MaxKeyBytes int
	// ErrorNamesCall puts the call id into "Unknown pending tool call: …" (openai: true). False says only
	// "Unknown pending tool call.".
	ErrorNamesCall bool
	// AsyncListed lists the calls of async functions in required_actions (openai: false). Either way the turn does
	// not wait for them.
	AsyncListed bool
	// LateAsyncResult is the status for the result of an async call whose turn has ended: 202 (openai) or 400.
	LateAsyncResult int
	// ArgumentsAsString emits arguments as a JSON-encoded string instead of the JSON value (openai: false).
	ArgumentsAsString bool
	// ReemitOnAdded emits agent.session.requires_action again when calls are added while others are pending
	// (openai: true).
	ReemitOnAdded bool
	// WebhookOnAdded sends another agent.session.action_required in that case (openai: false).
	WebhookOnAdded bool
	// SnapshotOnSubscribe sends item.added of the current turn's items to a new stream (openai: true).
	SnapshotOnSubscribe bool
	// RequiresActionOnSubscribe sends agent.session.requires_action to a new stream of a waiting session
	// (openai: false).
	RequiresActionOnSubscribe bool
	// ListUnfinishedItems includes items that are in progress or incomplete in the item lists (openai: false).
	ListUnfinishedItems bool
	// Obfuscation adds random padding to events unless the client asks for none (openai: true).
	Obfuscation bool
	// SendDone ends streams that the server ends with "data: [DONE]" (openai: false).
	SendDone bool
	// Heartbeat is the interval of comment lines on idle streams; zero sends none (openai: 0).
	Heartbeat time.Duration
	// StreamQueueFrames bounds the frames waiting for a slow reader before its stream is closed (openai: 16384).
	StreamQueueFrames int
	// SlowReaderError sends an error event "stream_interrupted" before a slow reader's stream is closed
	// (openai: false, the stream just ends).
	SlowReaderError bool
	// MinEventsPerPost and MaxEventsPerPost bound the events of one POST; a maximum of zero means no bound
	// (openai: 0 and 0).
	MinEventsPerPost, MaxEventsPerPost int
	// MaxBodyBytes bounds every request body (openai: 64 MiB, a guard rather than a known limit); more is
	// TooLargeStatus.
	MaxBodyBytes int64
	// TooLargeStatus is the status for a body over MaxBodyBytes: 400 (openai) or 413.
	TooLargeStatus int
	// MaxInputBytes bounds the text of one input message; zero means no bound (openai: 0).
	MaxInputBytes int
	// MaxResultBytes bounds the output or error of one result, as JSON (openai: 4 MiB); more is 400.
	MaxResultBytes int
	// MetadataFilterLag is how long a new session or changed metadata stays invisible to metadata filters
	// (openai: 0; the real lists are eventually consistent).
	MetadataFilterLag time.Duration
	// ReasoningItems puts a reasoning item before the calls of a response, unless the request has reasoning.effort
	// "none" (openai: true).
	ReasoningItems bool
	// ResponseIdempotency answers a POST /responses under a used Idempotency-Key, with the same body, with the response
	// it made before (openai: false, which is not documented to look at the key).
	ResponseIdempotency bool
	// ResponseRetention is how long a stored response can be retrieved and continued; zero is for ever (openai: 0; the
	// real service keeps them for 30 days).
	ResponseRetention time.Duration
	// ResumeBackgroundOnly refuses to stream a response again that was not created with background (openai: false).
	ResumeBackgroundOnly bool
	// RefuseSecondOutput refuses an output for a call that the items have one for already (openai: false, the first
	// one counts).
	RefuseSecondOutput bool
	// WebhookDuplicates delivers every webhook this many more times under the same webhook-id (openai: 0).
	WebhookDuplicates int
}

// Switches returns the profile's choices.
func (p Profile) Switches() Switches {
	sw := Switches{
		CreateStatus:        http.StatusCreated,
		EventsStatus:        http.StatusAccepted,
		BatchAtomic:         true,
		DuplicateIdentical:  http.StatusAccepted,
		DuplicateDifferent:  http.StatusConflict,
		ResultAfterCancel:   http.StatusConflict,
		SameKeyOtherBody:    "apply",
		MaxKeyBytes:         256,
		ErrorNamesCall:      true,
		LateAsyncResult:     http.StatusAccepted,
		ReemitOnAdded:       true,
		SnapshotOnSubscribe: true,
		Obfuscation:         true,
		StreamQueueFrames:   16 << 10,
		MaxBodyBytes:        64 << 20,
		TooLargeStatus:      http.StatusBadRequest,
		MaxResultBytes:      4 << 20,
		ReasoningItems:      true,
	}
	if p == ProfileOpenAgentCore {
		sw.SameKeyOtherBody = "conflict"
		sw.MaxKeyBytes = 128
		sw.ErrorNamesCall = false
		sw.Heartbeat = 15 * time.Second
		sw.SlowReaderError = true
		sw.MinEventsPerPost, sw.MaxEventsPerPost = 1, 64
		sw.MaxBodyBytes = 1 << 20
		sw.TooLargeStatus = http.StatusRequestEntityTooLarge
		sw.MaxInputBytes = 512 << 10
		sw.MaxResultBytes = 1 << 20
	}
	return sw
}

func (sw *Switches) validate() error {
	for _, c := range []struct {
		field    string
		value    int
		accepted []int
	}{
		{"CreateStatus", sw.CreateStatus, []int{200, 201}},
		{"EventsStatus", sw.EventsStatus, []int{202, 204}},
		{"DuplicateIdentical", sw.DuplicateIdentical, []int{202, 400, 409}},
		{"DuplicateDifferent", sw.DuplicateDifferent, []int{400, 409}},
		{"ResultAfterCancel", sw.ResultAfterCancel, []int{400, 409}},
		{"LateAsyncResult", sw.LateAsyncResult, []int{202, 400}},
		{"TooLargeStatus", sw.TooLargeStatus, []int{400, 413}},
	} {
		if !slices.Contains(c.accepted, c.value) {
			return fmt.Errorf("simulator: Switches.%s is %d: use one of %v", c.field, c.value, c.accepted)
		}
	}
	if accepted := []string{"apply", "ignore", "conflict"}; !slices.Contains(accepted, sw.SameKeyOtherBody) {
		return fmt.Errorf("simulator: Switches.SameKeyOtherBody is %q: use one of %q", sw.SameKeyOtherBody, accepted)
	}
	if sw.MaxBodyBytes <= 0 || sw.MaxResultBytes <= 0 || sw.MaxKeyBytes <= 0 || sw.StreamQueueFrames <= 0 {
		return fmt.Errorf("simulator: Switches.MaxBodyBytes, MaxResultBytes, MaxKeyBytes and StreamQueueFrames must be " +
			"positive: start from Profile.Switches() and change single fields")
	}
	return nil
}
