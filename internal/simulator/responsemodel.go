package simulator

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// modelTask is what the model is asked for one response: all items so far, and what it may use.
type modelTask struct {
	items     []*responseItem
	tools     []responseTool // with those that a tool search has loaded
	rawTools  json.RawMessage
	choice    toolChoice
	parallel  bool
	reasoning bool
}

// generation is what the model makes of a task.
type generation struct {
	Items []utterance
	// Fail is the error code of a failed response, Incomplete the reason of an incomplete one.
	Fail       string `json:",omitempty"`
	Incomplete string `json:",omitempty"`
}

// thinker makes one generation. The model keeps nothing between two responses: it plays its plan for the last user
// message again, against the calls and answers that the items have since, and goes on from there.
type thinker struct {
	task     *modelTask
	text     string          // the last user message
	calls    []*responseItem // since then
	outputs  map[string]*responseItem
	taken    map[*responseItem]bool // calls that are part of the plan
	searched bool
	answers  []answer
	out      generation
}

// think returns what the model answers. It fails when a script cannot be played.
func (m *modelTask) think() (*generation, error) {
	t := &thinker{task: m, outputs: make(map[string]*responseItem), taken: make(map[*responseItem]bool)}
	start := len(m.items)
	for i, it := range slices.Backward(m.items) {
		if it.kind == kindMessage && it.role == "user" {
			t.text, start = it.text, i
			break
		}
	}
	for _, it := range m.items[min(start, len(m.items)):] {
		switch {
		case it.kind == kindSearchCall:
			t.searched = true
		case it.isCall():
			t.calls = append(t.calls, it)
		}
	}
	for _, it := range m.items {
		if it.isAnswer() && t.outputs[it.callID] == nil { // the first answer counts
			t.outputs[it.callID] = it
		}
	}
	plan, err := t.plan()
	if err != nil {
		return nil, err
	}
	if err := t.play(plan); err != nil {
		return nil, err
	}
	return &t.out, nil
}

func (t *thinker) plan() (planner, error) {
	script, ok, err := ParseScript(t.text)
	if err != nil {
		return nil, invalidRequest("%s.", err)
	}
	if ok {
		return &scriptedTurn{script: script}, nil
	}
	return modelTurn(t.text, t.knownFunctions()), nil
}

// knownFunctions are the functions that the built-in model may plan with. Where a client can search for tools, it hopes
// to find the ones it knows.
func (t *thinker) knownFunctions() toolList {
	var known toolList
	for _, tl := range t.task.tools {
		if tl.kind == "function" {
			known = append(known, tool{kind: "function", name: tl.name, async: tl.async})
		}
	}
	if search, ok := searchTool(t.task.tools); ok && search.execution == "client" && !t.searched {
		for _, name := range []string{"get_weather", "calculate", "get_time", "get_customer"} {
			if _, ok := known.function(name); !ok {
				known = append(known, tool{kind: "function", name: name})
			}
		}
	}
	return known
}

// play goes through the plan to the first step that is not played yet, and plays that.
func (t *thinker) play(plan planner) error {
	for {
		next := plan.next(func() []answer { return t.answers })
		if len(next.calls) == 0 {
			t.end(next)
			return nil
		}
		pending := t.unplayed(next.calls)
		if len(pending) == 0 {
			continue
		}
		more, err := t.call(pending, next)
		if err != nil || !more {
			return err
		}
	}
}

// unplayed returns the calls of a step that the items do not have, and takes note of the answers to the others.
func (t *thinker) unplayed(step []ScriptCall) (pending []ScriptCall) {
	for _, c := range step {
		if c.Type == "tool_search" {
			if !t.searched {
				pending = append(pending, c)
			}
			continue
		}
		at := slices.IndexFunc(t.calls, func(it *responseItem) bool {
			return !t.taken[it] && it.name == c.Name && (c.Namespace == "" || c.Namespace == it.namespace) &&
				(c.CallID == "" || c.CallID == it.callID)
		})
		if at < 0 {
			pending = append(pending, c)
			continue
		}
		t.taken[t.calls[at]] = true
		if out := t.outputs[t.calls[at].callID]; out != nil {
			t.answers = append(t.answers, answerOf(c.Name, out.output))
		}
	}
	return pending
}

// answerOf is an output as the model reads it. Errors travel in the output as {"error": …}.
func answerOf(name string, output json.RawMessage) answer {
	text := outputText(output)
	var failed map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &failed) == nil && len(failed["error"]) > 0 && failed["result"] == nil {
		return answer{name: name, text: outputText(failed["error"])}
	}
	return answer{name: name, success: true, text: text}
}

// call speaks the calls of a step as far as they are permitted. It reports that the model goes on without an answer,
// which it does after asynchronous calls.
func (t *thinker) call(pending []ScriptCall, next step) (more bool, err error) {
	var permitted []ScriptCall
	for _, c := range pending {
		tl, ok := t.tool(c)
		if ok && !tl.deferred && !t.task.choice.permits(tl) || t.task.choice.none {
			continue
		}
		permitted = append(permitted, c)
	}
	if len(permitted) == 0 {
		t.end(next)
		return false, nil
	}
	if first := slices.DeleteFunc(slices.Clone(permitted), func(c ScriptCall) bool { return c.AfterResults > 0 }); len(first) > 0 {
		permitted = first
	}
	if !t.task.parallel {
		permitted = permitted[:1]
	}
	if done, err := t.load(permitted); done || err != nil {
		return false, err
	}
	slices.SortStableFunc(permitted, func(a, b ScriptCall) int { return a.AfterMS - b.AfterMS })
	t.reason()
	async := true
	for _, c := range permitted {
		u := t.utter(c)
		t.out.Items = append(t.out.Items, u)
		if u.Incomplete {
			t.out.Incomplete = "max_output_tokens"
			return false, nil
		}
		t.calls = append(t.calls, u.item())
		async = async && u.Async
	}
	if !async || len(permitted) < len(pending) {
		return false, nil
	}
	t.unplayed(permitted)
	return true, nil
}

func (t *thinker) tool(c ScriptCall) (responseTool, bool) {
	if c.Type == "tool_search" {
		return searchTool(t.task.tools)
	}
	return findTool(t.task.tools, c.Namespace, c.Name)
}

// utter makes the item of a call to a tool that is there.
func (t *thinker) utter(c ScriptCall) utterance {
	tl, _ := t.tool(c)
	u := utterance{
		ID: newID("fc_"), Kind: kindFunctionCall, CallID: c.CallID, Namespace: tl.namespace, Name: tl.name,
		Text: string(c.Arguments), Async: tl.async, CallerID: c.CallerID, Incomplete: c.Incomplete,
		After: time.Duration(c.AfterMS) * time.Millisecond,
	}
	if u.CallID == "" {
		u.CallID = newID("call_")
	}
	if u.Text == "" {
		u.Text = "{}"
	}
	switch tl.kind {
	case "tool_search":
		u.ID, u.Kind, u.Execution = newID("tsc_"), kindSearchCall, tl.execution
	case "custom":
		u.ID, u.Kind, u.Text = newID("ctc_"), kindCustomCall, c.Input
		if c.Input == "" && len(c.Arguments) > 0 {
			u.Text = outputText(c.Arguments)
		}
	}
	if u.Incomplete {
		u.Text = u.Text[:len(u.Text)/2]
		u.Text = strings.ToValidUTF8(u.Text, "")
	}
	return u
}

// reason thinks before a response that has calls.
func (t *thinker) reason() {
	if t.task.reasoning && len(t.out.Items) == 0 {
		t.out.Items = append(t.out.Items, utterance{ID: newID("rs_"), Kind: kindReasoning})
	}
}

// end speaks the last word, or what a tool_choice forces instead of it.
func (t *thinker) end(last step) {
	if t.task.choice.required {
		if c, ok := t.forced(); ok {
			t.reason()
			t.out.Items = append(t.out.Items, t.utter(c))
			return
		}
	}
	t.out.Fail, t.out.Incomplete = last.fail, last.incomplete
	u := utterance{ID: newID("msg_"), Kind: kindMessage, Text: last.say, Incomplete: last.incomplete != ""}
	switch {
	case last.refuse != "":
		u.Text, u.Refusal = last.refuse, true
	case last.fail != "", last.incomplete != "" && last.say == "":
		return
	case len(last.calls) > 0 && last.say == "":
		l := languageOf(t.text)
		u.Text = l.pick("I cannot answer this: I must not use the tools it needs.", "没有可用的工具,我无法回答。")
	}
	t.out.Items = append(t.out.Items, u)
}

// forced is a call that only a tool_choice wants: of the first tool that is permitted, with the simplest arguments.
func (t *thinker) forced() (ScriptCall, bool) {
	l := languageOf(t.text)
	for _, tl := range t.task.tools {
		if tl.kind != "function" && tl.kind != "custom" || tl.deferred || !t.task.choice.permits(tl) {
			continue
		}
		text := l.pick("Beijing", "北京")
		return ScriptCall{
			Name: tl.name, Namespace: tl.namespace, Arguments: sampleArguments(tl.parameters, text), Input: text,
		}, true
	}
	return ScriptCall{}, false
}
