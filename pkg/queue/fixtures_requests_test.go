package queue

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

// registrationCase is a function that an executor declares, and the request for it.
type registrationCase struct {
	Name  string            `json:"name"`
	About string            `json:"about,omitempty"`
	Input registrationInput `json:"input"`
	Want  wireMessage       `json:"expect"`
}

type registrationInput struct {
	Pool      string          `json:"pool"`
	Function  json.RawMessage `json:"function"`
	Functions []string        `json:"functions"`
	Executor  executorInfo    `json:"executor"`
}

func fixtureRegistrations() []registrationCase {
	who := executorInfo{ID: "host-1-42", Language: "go", Version: "1.2.3", Host: "host-1"}
	one := func(name, about, function string, others ...string) registrationCase {
		var f call.Function
		_ = json.Unmarshal([]byte(function), &f)
		return registrationCase{Name: name, About: about, Input: registrationInput{
			Pool: "crm", Function: json.RawMessage(function), Functions: append([]string{f.Name}, others...), Executor: who,
		}}
	}
	return []registrationCase{
		one("least", "a name is all that a function needs", `{"name":"get_customer","policy":{}}`),
		one("full", "every member", `{"name":"get_customer","description":"Look up a <customer> by id.","parameters":{"type":"object","properties":{"customer_id":{"type":"string","description":"the customer's id"}},"required":["customer_id"],"additionalProperties":false},"verifies":true,"policy":{"timeout":"10s","queue_timeout":"1m30s","total_deadline":"15m","attempts":5,"backoff":{"initial":"500ms","max":"30s","multiplier":1.5,"jitter":0.1},"effects":"idempotent","on_uncertain":"verify"}}`),
		one("second-of-pool", "each function has a request of its own, and names all", `{"name":"charge","policy":{"effects":"side_effects","on_uncertain":"park"}}`, "get_customer"),
		one("hostile-name", "the subject has the token, the payload the name", `{"name":"ns.get customer > 天","policy":{"effects":"none"}}`, "get_customer"),
	}
}

func TestFixtureRegistrations(t *testing.T) {
	t.Parallel()
	n := names{"fn"}
	cases := fixtureRegistrations()
	for i := range cases {
		c := &cases[i]
		var f call.Function
		require.NoError(t, json.Unmarshal(c.Input.Function, &f))
		require.NoError(t, f.Validate(), c.Name)
		who := c.Input.Executor
		body, err := Registration{Pool: c.Input.Pool, ID: who.ID, Language: who.Language, Version: who.Version, Host: who.Host}.request(f, c.Input.Functions)
		require.NoError(t, err)
		c.Want = goldenMessage(t, &nats.Msg{Subject: n.register(call.Token(f.Name)), Data: body}, "registrations/"+c.Name+".payload")
		payloadFits(t, "registration-request", body, true, c.Name)
	}
	goldenIndex(t, "registrations.json", "Functions that executors declare, and the requests for them. Payloads are compared as JSON.", cases)
}

// refusedRegistration is a request that gets an error.
type refusedRegistration struct {
	Name  string `json:"name"`
	About string `json:"about"`
	wireMessage
	Code   string `json:"code"`
	Schema bool   `json:"schema_refuses"`
}

func TestFixtureRegistrationsAreRefused(t *testing.T) {
	t.Parallel()
	r := new(Registry) // these are refused before anything is looked up
	for _, c := range readIndex[refusedRegistration](t, "invalid-registrations.json") {
		m := c.message(t)
		_, err := r.register(t.Context(), lastToken(m.Subject), m.Data)
		requireRefused(t, err, c.Code)
		payloadFits(t, "registration-request", m.Data, !c.Schema, c.Name)
	}
}

// replyCase is an answer to a request, and what an executor makes of it.
type replyCase[E any] struct {
	Name    string `json:"name"`
	About   string `json:"about"`
	Payload string `json:"payload"`
	Schema  bool   `json:"schema_refuses"`
	Expect  E      `json:"expect"`
}

type registrationAnswer struct {
	Binding *wireBinding `json:"binding,omitempty"`
	// Code of a refusal, after which the executor gives up.
	Code string `json:"code,omitempty"`
	// Again: the executor registers again after a wait.
	Again bool `json:"again,omitempty"`
}

func TestFixtureRegistrationReplies(t *testing.T) {
	t.Parallel()
	for _, c := range readIndex[replyCase[registrationAnswer]](t, "registration-replies.json") {
		payload := fixture(t, c.Payload)
		binding, err := parseBinding("f", payload)
		var refused *RegisterError
		var got registrationAnswer
		switch {
		case err == nil:
			got.Binding = binding.wire()
		case errors.As(err, &refused) && refused.Code != CodeUnavailable:
			got.Code = refused.Code
		default:
			got.Again = true
		}
		require.Equal(t, c.Expect, got, c.Name)
		payloadFits(t, "registration-reply", payload, !c.Schema, c.Name)
	}
}

// A dispatcher takes the fixtures of registrations, and answers with a binding of the documented form.
func TestFixtureRegistrationsAreTaken(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	executor := connect(t, Config{URL: i.server.URL()})
	for _, c := range readIndex[registrationCase](t, "registrations.json") {
		reply, err := executor.nc.RequestMsgWithContext(testContext(t), c.Want.message(t))
		require.NoError(t, err)
		payloadFits(t, "registration-reply", reply.Data, true, string(reply.Data))
		binding, err := parseBinding(c.Name, reply.Data)
		require.NoError(t, err, c.Name)
		require.Equal(t, Binding{
			Stream: "FN_CALLS", Consumer: "pool_crm", AckWait: 30 * time.Second, MaxPayload: executor.MaxPayload(),
			ResultPrefix: "fn.result.", Refresh: 30 * time.Second,
		}, binding, c.Name)
	}
}

// lookupCase is a question about a call.
type lookupCase struct {
	Name  string       `json:"name"`
	About string       `json:"about,omitempty"`
	Call  answeredCall `json:"call"`
	Want  wireMessage  `json:"expect"`
}

func TestFixtureLookups(t *testing.T) {
	t.Parallel()
	n := names{"fn"}
	var cases []lookupCase
	for _, name := range []string{"plain", "hostile-ids"} {
		c := lookupCase{Name: name, Call: fixtureOutcome(name, "", "", outcomeInput{}).Call}
		token := call.Token(c.Call.Function)
		body := lookupRequest(call.Dispatch{Call: call.Call{Key: c.Call.key()}, Nonce: c.Call.Nonce, Attempt: c.Call.Attempt, Handover: c.Call.Handover})
		c.Want = goldenMessage(t, &nats.Msg{Subject: n.outcome(token), Data: body}, "lookups/"+name+".payload")
		payloadFits(t, "lookup-request", body, true, name)
		cases = append(cases, c)
	}
	goldenIndex(t, "lookups.json", "Questions about calls that may have run. Payloads are compared as JSON.", cases)
}

type lookupAnswer struct {
	Standing call.Standing `json:"standing,omitempty"`
	// Again: the executor asks again after a wait.
	Again bool `json:"again,omitempty"`
}

func TestFixtureLookupReplies(t *testing.T) {
	t.Parallel()
	for _, c := range readIndex[replyCase[lookupAnswer]](t, "lookup-replies.json") {
		payload := fixture(t, c.Payload)
		standing, err := parseStanding(payload)
		got := lookupAnswer{standing, err != nil}
		require.Equal(t, c.Expect, got, c.Name)
		payloadFits(t, "lookup-reply", payload, !c.Schema, c.Name)
	}
}

// A dispatcher reads the fixtures of look-ups as what they ask about.
func TestFixtureLookupsAreAnswered(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	asked := make(chan call.Question, 1)
	require.NoError(t, i.dispatcher.ServeOutcomes(serving(t), func(_ context.Context, q call.Question) (call.Standing, error) {
		asked <- q
		return call.StandingAnswered, nil
	}))
	executor := connect(t, Config{URL: i.server.URL()})
	for _, c := range readIndex[lookupCase](t, "lookups.json") {
		reply, err := executor.nc.RequestMsgWithContext(testContext(t), c.Want.message(t))
		require.NoError(t, err)
		payloadFits(t, "lookup-reply", reply.Data, true, c.Name)
		q := <-asked
		require.Equal(t, c.Call.key(), q.Key, c.Name)
		require.Equal(t, call.Token(c.Call.Function), q.Token)
		require.Equal(t, c.Call.Nonce, q.Nonce)
		require.Equal(t, c.Call.Handover, q.Handover)
	}
}

// cancelCase is a cancel notice. Without an expectation it is ignored.
type cancelCase struct {
	Name  string `json:"name"`
	About string `json:"about"`
	wireMessage
	Schema bool           `json:"schema_refuses"`
	Expect *cancelledCall `json:"expect"`
}

type cancelledCall struct {
	Session string `json:"session_id"`
	Turn    string `json:"turn_id"`
	Call    string `json:"call_id"`
	Reason  string `json:"reason"`
}

func TestFixtureCancels(t *testing.T) {
	t.Parallel()
	for _, c := range readIndex[cancelCase](t, "cancels.json") {
		m := c.message(t)
		key, reason, ok := parseCancel(m.Data)
		if c.Expect == nil {
			require.False(t, ok, c.Name)
		} else {
			got := cancelledCall{key.Session, key.Turn, key.Call, reason}
			require.Equal(t, *c.Expect, got, c.Name)
		}
		payloadFits(t, "cancel", m.Data, !c.Schema, c.Name)
	}
	key := call.Key{Session: "sess_1", Turn: "turn_1", Call: "call_1"}
	payloadFits(t, "cancel", cancelNotice(key, "turn \"ended\""), true, "what dispatchers write")
}

// termCase is a message that no executor understands, and the body that terminates it.
type termCase struct {
	Name    string            `json:"name"`
	Reason  string            `json:"reason"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

func TestFixtureTerms(t *testing.T) {
	t.Parallel()
	cases := []termCase{
		{Name: "all-headers", Reason: "protocol \"2\"; this executor speaks 1", Headers: map[string]string{
			headerProtocol: "2", headerKey: "sess_1/turn_1/call_1", headerAttempt: "1", headerNonce: "1-0123456789abcdefghijkl",
			headerResultSubject: "fn.result.get_customer.p07", headerOnUncertain: "park",
		}},
		{Name: "no-headers", Reason: "two\nlines"},
	}
	for i := range cases {
		c := &cases[i]
		h := nats.Header{}
		for name, value := range c.Headers {
			h[name] = []string{value}
		}
		reason := encodeTermReason(c.Reason, h)
		payloadFits(t, "term-reason", reason, true, c.Name)
		c.Body = "terms/" + c.Name + ".payload"
		golden(t, c.Body, append([]byte("+TERM "), reason...))
	}
	goldenIndex(t, "terms.json", "What is published on the reply subject of a message that is no call, at its fourth delivery. After '+TERM ' comes JSON.", cases)
}
