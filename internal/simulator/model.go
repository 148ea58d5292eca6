package simulator

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// planner decides the steps of a turn. next is called at the start and whenever all blocking calls of the last step
// are answered; answers returns those of the turn so far, in the order of the calls.
type planner interface {
	next(answers func() []answer) step
}

// step is either a round of calls or the end of the turn.
type step struct {
	calls []ScriptCall
	say   string
	fail  string

	// For the Responses API.
	refuse     string
	incomplete string
}

// answer is the accepted result of a call, as the model sees it.
type answer struct {
	name    string
	success bool
	text    string // output, or the error of a failed call
}

// planFor chooses how a user text is answered with the functions of tools: by the script it is, or by the model.
func planFor(text string, tools toolList) (planner, error) {
	script, ok, err := ParseScript(text)
	if err != nil {
		return nil, invalidRequest("%s.", err)
	}
	if !ok {
		return modelTurn(text, tools), nil
	}
	if name, missing := script.missing(tools); missing {
		return nil, invalidRequest("The script calls %q, which is no function in agent.tools.", name)
	}
	return &scriptedTurn{script: script}, nil
}

// modelTurn is the built-in model: it recognises a few questions and answers anything else with a sentence.
func modelTurn(text string, tools toolList) planner {
	l := languageOf(text)
	lower := strings.ToLower(text)
	has := func(names ...string) bool {
		for _, name := range names {
			if fn, ok := tools.function(name); !ok || fn.async { // This model only works with results it waits for.
				return false
			}
		}
		return true
	}
	if request, ok := requestIn(text, has); ok {
		return request
	}
	switch {
	case has("get_customer") && (strings.Contains(lower, "customer") || strings.Contains(text, "客户")):
		if ids := digits.FindAllString(text, -1); len(ids) > 0 {
			return &customerTurn{language: l, ids: ids}
		}
	case has("get_weather") && asksWeather(lower):
		if cities := findCities(text, l); len(cities) > 0 {
			return &weatherTurn{
				language: l, cities: cities,
				withTime: has("get_time") && (strings.Contains(text, "这个点") || strings.Contains(lower, "at this hour")),
				compare:  len(cities) == 2 && has("calculate"),
			}
		}
	case has("get_time") && (strings.Contains(text, "几点") || strings.Contains(lower, "what time")):
		return &timeTurn{language: l}
	}
	return sayTurn(l.pick(
		"I am a small built-in model. I answer scripts and a few known questions; this is not one of them.",
		"我是内置的小模型,只会按脚本行事或回答少数已知的问题。"))
}

type language bool

const (
	english language = false
	chinese language = true
)

func languageOf(text string) language {
	return language(strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) }))
}

func (l language) pick(en, zh string) string {
	if l == chinese {
		return zh
	}
	return en
}

type sayTurn string

func (t sayTurn) next(func() []answer) step { return step{say: string(t)} }

var digits = regexp.MustCompile(`\d+`)

// customerTurn looks up each customer the message names.
type customerTurn struct {
	language
	ids   []string
	asked bool
}

func (t *customerTurn) next(all func() []answer) step {
	if !t.asked {
		t.asked = true
		var calls []ScriptCall
		for _, id := range t.ids {
			calls = append(calls, callWith("get_customer", map[string]any{"customer_id": id}))
		}
		return step{calls: calls}
	}
	var parts []string
	for i, a := range all() {
		parts = append(parts, t.describe(t.ids[i], a))
	}
	return step{say: strings.Join(parts, t.pick(" ", ""))}
}

func (t *customerTurn) describe(id string, a answer) string {
	var out struct {
		Found    *bool `json:"found"`
		Customer *struct {
			Name string `json:"name"`
			Plan string `json:"plan"`
		} `json:"customer"`
	}
	switch err := json.Unmarshal([]byte(a.text), &out); {
	case !a.success:
		return fmt.Sprintf(t.pick("Customer %s could not be looked up: %s.", "客户 %s 查询失败:%s。"), id, a.text)
	case err == nil && out.Customer != nil:
		return fmt.Sprintf(t.pick("Customer %s is %s (plan %s).", "客户 %s 是 %s(%s 套餐)。"),
			id, out.Customer.Name, out.Customer.Plan)
	case err == nil && out.Found != nil && !*out.Found:
		return fmt.Sprintf(t.pick("Customer %s was not found.", "没有找到客户 %s。"), id)
	default:
		return fmt.Sprintf(t.pick("Customer %s: %s.", "客户 %s:%s。"), id, a.text)
	}
}

// timeTurn asks for the time.
type timeTurn struct {
	language
	asked bool
}

func (t *timeTurn) next(all func() []answer) step {
	if !t.asked {
		t.asked = true
		return step{calls: []ScriptCall{callWith("get_time", map[string]any{})}}
	}
	answers := all()
	if len(answers) == 0 {
		return step{say: t.pick("I did not get the time.", "没有得到时间。")}
	}
	if a := answers[0]; !a.success {
		return step{say: fmt.Sprintf(t.pick("I could not get the time: %s.", "无法获取时间:%s。"), a.text)}
	}
	return step{say: fmt.Sprintf(t.pick("It is %s.", "现在是 %s。"), timeText(answers[0].text))}
}

func timeText(output string) string {
	var fields map[string]any
	if json.Unmarshal([]byte(output), &fields) != nil {
		return output
	}
	for _, key := range []string{"time", "now", "datetime"} {
		if text, ok := fields[key].(string); ok {
			return text
		}
	}
	return output
}

func callWith(name string, args map[string]any) ScriptCall {
	raw, err := json.Marshal(args)
	if err != nil {
		raw = []byte("{}")
	}
	return ScriptCall{Name: name, Arguments: raw}
}
