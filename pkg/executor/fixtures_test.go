package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

// update writes the generated fixtures: go test ./pkg/executor -run Fixture -update.
var update = flag.Bool("update", false, "write the generated files of protocol/fixtures")

const fixtures = "../../protocol/fixtures"

func fixture(t *testing.T, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(fixtures, name))
	require.NoError(t, err)
	return body
}

// outputCase is the part of a case of outcomes.json that is about outputs.
type outputCase struct {
	Name  string    `json:"name"`
	Kind  call.Kind `json:"kind"`
	Input struct {
		Text  *string         `json:"text"`
		Bytes string          `json:"bytes"`
		UTF16 []uint16        `json:"utf16"`
		Parts json.RawMessage `json:"parts"`
		Value json.RawMessage `json:"value"`
		None  bool            `json:"none"`
	} `json:"input"`
	Expect struct {
		Payload string `json:"payload"`
		Text    string `json:"output_text"`
		IsJSON  bool   `json:"output_is_json"`
	} `json:"expect"`
}

// output makes the case's output by the SDK's own means.
func (c outputCase) output(t *testing.T) Output {
	t.Helper()
	in := c.Input
	switch {
	case in.Text != nil:
		return Text(*in.Text)
	case in.Bytes != "":
		return Text(string(fixture(t, in.Bytes)))
	case in.UTF16 != nil:
		return Text(string(utf16.Decode(in.UTF16)))
	case in.None:
		return Output{}
	case in.Parts != nil:
		content, err := ParseContent(in.Parts)
		require.NoError(t, err)
		o, err := content.Output()
		require.NoError(t, err)
		return o
	}
	var value any
	require.NoError(t, json.Unmarshal(in.Value, &value))
	o, err := outputOf(value)
	require.NoError(t, err)
	return o
}

func TestFixtureOutputs(t *testing.T) {
	t.Parallel()
	var index struct {
		Cases []outputCase `json:"cases"`
	}
	require.NoError(t, json.Unmarshal(fixture(t, "outcomes.json"), &index))
	seen := 0
	for _, c := range index.Cases {
		if c.Kind != call.Success {
			continue
		}
		seen++
		var want struct{ Output json.RawMessage }
		require.NoError(t, json.Unmarshal(fixture(t, c.Expect.Payload), &want))
		got := c.output(t).wire()
		if c.Expect.Text == "" {
			require.JSONEq(t, string(want.Output), string(got), c.Name)
			continue
		}
		var text string
		require.NoError(t, json.Unmarshal(got, &text), c.Name)
		if c.Expect.IsJSON {
			require.JSONEq(t, string(fixture(t, c.Expect.Text)), text, c.Name)
		} else {
			require.Equal(t, string(fixture(t, c.Expect.Text)), text, c.Name)
		}
	}
	require.Greater(t, seen, 20)
}

// decision is what an executor does with a delivery.
type decision struct {
	// What it knows: the function's effects, the delivery, and the call's choice. Standing is
	// what a dispatcher answers if it is asked, Verify what the verify handler does, empty
	// without one.
	Effects     call.Effects     `json:"effects"`
	Deliveries  int              `json:"deliveries"`
	Uncertain   bool             `json:"uncertain"`
	OnUncertain call.OnUncertain `json:"on_uncertain"`
	Standing    call.Standing    `json:"standing"`
	Verify      string           `json:"verify"`
	Want        decided          `json:"expect"`
}

// decided says whether a dispatcher and the verify handler are asked, whether the handler
// is run, and what is reported before the call is acked; no kind is no report.
type decided struct {
	LookedUp bool      `json:"looked_up"`
	Verified bool      `json:"verified"`
	Runs     bool      `json:"runs"`
	Kind     call.Kind `json:"kind"`
	Cause    string    `json:"cause"`
	// Unknown: the text of the failure has to say that the outcome is unknown.
	Unknown bool `json:"says_unknown"`
}

// The ways of a verify handler.
const (
	verifyDone       = "done"
	verifyNotDone    = "not_done"
	verifyCannotTell = "cannot_tell"
	verifyFails      = "fails"
)

func decisions() []decision {
	var all []decision
	choices := []call.OnUncertain{call.UncertainRerun, call.UncertainVerify, call.UncertainFail, call.UncertainPark}
	for _, choice := range choices {
		all = append(all, decision{Effects: call.EffectsSideEffects, Deliveries: 1, OnUncertain: choice, Standing: call.StandingAnswered, Verify: verifyDone})
	}
	for _, again := range []decision{{Deliveries: 1, Uncertain: true}, {Deliveries: 2}, {Deliveries: 3}, {Deliveries: 4}} {
		again.Effects = call.EffectsSideEffects
		for _, choice := range choices {
			again.OnUncertain, again.Verify = choice, ""
			for _, again.Standing = range []call.Standing{call.StandingAnswered, call.StandingCancelled} {
				all = append(all, again)
			}
			for _, again.Standing = range []call.Standing{call.StandingPending, call.StandingUnknown} {
				for _, again.Verify = range []string{"", verifyDone, verifyNotDone, verifyCannotTell, verifyFails} {
					all = append(all, again)
				}
			}
		}
	}
	for _, effects := range []call.Effects{call.EffectsNone, call.EffectsIdempotent} {
		for _, choice := range choices {
			for _, n := range []int{2, 4} {
				all = append(all, decision{Effects: effects, Deliveries: n, OnUncertain: choice, Standing: call.StandingPending})
			}
		}
	}
	return all
}

// decide has the SDK decide.
func (c decision) decide(t *testing.T) (got decided) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t, Config{})
		opts := []Option{WithEffects(c.Effects)}
		if c.Verify != "" {
			opts = append(opts, WithVerify(func(context.Context, Call) (Verdict, error) {
				got.Verified = true
				switch c.Verify {
				case verifyDone:
					return Done("done before"), nil
				case verifyNotDone:
					return NotDone(), nil
				case verifyCannotTell:
					return CannotTell("the bank does not answer"), nil
				}
				return Verdict{}, errors.New("no way to the bank")
			}))
		}
		b.on("f", func(context.Context) error { got.Runs = true; return nil }, opts...)
		b.q.lookup = func(call.Dispatch) (call.Standing, error) { got.LookedUp = true; return c.Standing, nil }
		b.start()
		d := dispatch("f", 1)
		d.Uncertain, d.OnUncertain = c.Uncertain, c.OnUncertain
		b.q.add(&fakeMessage{d: d, deliveries: c.Deliveries - 1})
		synctest.Wait()
		require.Zero(t, b.q.left(), "every decision ends in an ack: %+v", c)
		if all := b.q.reported(); len(all) > 0 {
			got.Kind, got.Cause = all[0].Kind, all[0].Cause
			got.Unknown = strings.Contains(all[0].Error, unknownOutcomeText)
		}
		require.NoError(t, b.end())
	})
	return got
}

// protocol/fixtures/decisions.json is what this SDK decides; other SDKs must decide the same.
func TestFixtureDecisions(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	text.WriteString(`{"about":"What an executor does with a delivery; docs/protocol.md says why. A standing counts only where the call is looked up.","cases":[`)
	for i, c := range decisions() {
		c.Want = c.decide(t)
		line, err := json.Marshal(c)
		require.NoError(t, err)
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteByte('\n')
		text.Write(line)
	}
	text.WriteString("\n]}\n")
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join(fixtures, "decisions.json"), text.Bytes(), 0o600))
	}
	require.Equal(t, text.String(), string(fixture(t, "decisions.json")), "run go test ./pkg/executor -run Fixture -update")
}
