package simulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Script is a turn that its own user message dictates: the calls of round after round, then the answer.
type Script struct {
	// Rounds lists the calls of each round; the calls of one round are required together.
	Rounds [][]ScriptCall `json:"rounds"`
	// Say is the assistant's answer after the last round.
	Say string `json:"say"`
	// SayResults adds the result of each call to the answer, a line each, in the order of the calls.
	SayResults bool `json:"say_results"`
	// Fail, when set, ends the turn as failed with this error code instead of answering (e.g. "server_error").
	Fail string `json:"fail"`
	// Refuse and Incomplete are for the Responses API: the answer is a refusal of this text; the last response ends as
	// incomplete for this reason (such as "max_output_tokens"), with what there is of Say.
	Refuse     string `json:"refuse"`
	Incomplete string `json:"incomplete"`
}

// ScriptCall is one scripted function call.
type ScriptCall struct {
	// Name is the function, free text.
	Name string `json:"name"`
	// Arguments are emitted as these bytes; nil (no such key) emits no arguments field.
	Arguments json.RawMessage `json:"arguments"`
	// CallID forces the id of the call. The same id twice in a round lists one call twice.
	CallID string `json:"call_id"`
	// AfterResults delays the call until so many calls of its round are answered.
	AfterResults int `json:"after_results"`
	// AfterMS delays the call by this many milliseconds from the start of its round.
	AfterMS int `json:"after_ms"`

	// The rest is for the Responses API only.

	// Type is "function" (also when empty), "custom" or "tool_search", whose Arguments are an object. A tool that is
	// declared as custom needs no Type.
	Type string `json:"type"`
	// Input is the free text for a custom tool.
	Input string `json:"input"`
	// Namespace is that of the tool; empty finds the tool in any.
	Namespace string `json:"namespace"`
	// CallerID makes the call that of a program with this call id.
	CallerID string `json:"caller_id"`
	// Incomplete cuts the call off: it has the status incomplete and so has its response.
	Incomplete bool `json:"incomplete"`
}

// ParseScript returns the script in a user message. It returns ok false when text is no JSON object with "rounds" or
// "say", which makes it a message for the built-in model, and an error when it is one but cannot be run.
func ParseScript(text string) (script Script, ok bool, err error) {
	trimmed := strings.TrimSpace(text)
	if !strings.HasPrefix(trimmed, "{") {
		return Script{}, false, nil
	}
	var fields struct {
		Rounds     *[][]ScriptCall `json:"rounds"`
		Say        *string         `json:"say"`
		SayResults bool            `json:"say_results"`
		Fail       string          `json:"fail"`
		Refuse     string          `json:"refuse"`
		Incomplete string          `json:"incomplete"`
	}
	dec := json.NewDecoder(strings.NewReader(trimmed))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&fields); err != nil {
		if !looksScripted(trimmed) {
			return Script{}, false, nil
		}
		return Script{}, true, fmt.Errorf("the script cannot be used: %w", err)
	}
	switch {
	case fields.Rounds == nil && fields.Say == nil:
		return Script{}, false, nil
	case dec.InputOffset() != int64(len(trimmed)):
		return Script{}, true, fmt.Errorf("the script has data after its end")
	case fields.Rounds != nil:
		script.Rounds = *fields.Rounds
	}
	if fields.Say != nil {
		script.Say = *fields.Say
	}
	script.SayResults, script.Fail, script.Refuse, script.Incomplete = fields.SayResults, fields.Fail, fields.Refuse, fields.Incomplete
	return script, true, script.check()
}

// looksScripted reports whether a text that cannot be decoded as a script was meant as one.
func looksScripted(text string) bool {
	var keys map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &keys) != nil {
		return strings.Contains(text, `"rounds"`)
	}
	_, rounds := keys["rounds"]
	_, say := keys["say"]
	return rounds || say
}

func (s *Script) check() error {
	forced := make(map[string]int)
	for i, round := range s.Rounds {
		if len(round) == 0 {
			return fmt.Errorf("the script's round %d has no calls", i+1)
		}
		for j, call := range round {
			if call.AfterResults < 0 || call.AfterMS < 0 {
				return fmt.Errorf("the script's round %d, call %d: after_results and after_ms must not be negative", i+1, j+1)
			}
			if call.Type != "" && call.Type != "function" && call.Type != "custom" && call.Type != "tool_search" {
				return fmt.Errorf("the script's round %d, call %d: type is function, custom or tool_search", i+1, j+1)
			}
			if call.CallID == "" {
				continue
			}
			if at, known := forced[call.CallID]; known && at != i {
				return fmt.Errorf("the script uses call_id %q in two rounds", call.CallID)
			}
			forced[call.CallID] = i
		}
	}
	return nil
}

// missing returns the first function of the script that tools does not have.
func (s *Script) missing(tools toolList) (name string, missing bool) {
	known := make(map[string]struct{}, len(tools))
	for i := range tools {
		if tools[i].kind == "function" {
			known[tools[i].name] = struct{}{}
		}
	}
	for _, round := range s.Rounds {
		for _, call := range round {
			if _, ok := known[call.Name]; !ok {
				return call.Name, true
			}
		}
	}
	return "", false
}

// scriptedTurn plays a script.
type scriptedTurn struct {
	script Script
	round  int
}

func (t *scriptedTurn) next(all func() []answer) step {
	if t.round < len(t.script.Rounds) {
		calls := t.script.Rounds[t.round]
		// A played round is not needed any more; finished turns should not hold their scripts.
		t.script.Rounds[t.round] = nil
		t.round++
		return step{calls: calls}
	}
	say := []string{t.script.Say}
	if t.script.SayResults {
		for _, a := range all() {
			say = append(say, a.text)
		}
	}
	return step{say: strings.Join(say, "\n"), fail: t.script.Fail, refuse: t.script.Refuse, incomplete: t.script.Incomplete}
}

// outputText returns the text of an accepted output: a JSON string, or the texts of a content array.
func outputText(output json.RawMessage) string {
	var text string
	if json.Unmarshal(output, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(output, &parts) == nil {
		var joined bytes.Buffer
		for _, part := range parts {
			joined.WriteString(part.Text)
		}
		return joined.String()
	}
	return string(output)
}
