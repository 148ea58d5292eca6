package simulator

import (
	"encoding/json"
	"fmt"
	"math/big"
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
	l := language(english)
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
		l = chinese
	}
	lower := strings.ToLower(text)
	has := func(names ...string) bool {
		for _, name := range names {
			if fn, ok := tools.function(name); !ok || fn.async { // This model only works with results it waits for.
				return false
			}
		}
		return true
	}
	switch {
	case has("get_customer") && (strings.Contains(lower, "customer") || strings.Contains(text, "客户")):
		if ids := digits.FindAllString(text, -1); len(ids) > 0 {
			return &customerTurn{language: l, ids: ids}
		}
	case has("get_weather") && (asksWeather(lower)):
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

// weatherTurn asks for the weather of one or two cities and, with two, for the difference.
type weatherTurn struct {
	language
	cities   []string
	withTime bool
	compare  bool
	asked    int
}

type weather struct {
	Weather string      `json:"weather"`
	TempC   json.Number `json:"temp_c"`
}

func (t *weatherTurn) next(all func() []answer) step {
	if t.asked == 0 {
		var calls []ScriptCall
		if t.withTime {
			calls = append(calls, callWith("get_time", map[string]any{}))
		}
		for _, city := range t.cities {
			calls = append(calls, callWith("get_weather", map[string]any{"city": city}))
		}
		t.asked = len(calls)
		return step{calls: calls}
	}
	answers := all()
	if len(answers) < t.asked { // A function became async in the middle of the turn.
		return step{say: t.pick("I did not get all results.", "没有得到全部结果。")}
	}
	var parts []string
	if t.withTime {
		parts = append(parts, fmt.Sprintf(t.pick("it is %s", "现在 %s"), timeText(answers[0].text)))
		answers = answers[1:]
	}
	var reports []weather
	for i, city := range t.cities {
		report, part := t.report(city, answers[i], i == 0)
		if report.TempC != "" {
			reports = append(reports, report)
		}
		parts = append(parts, part)
	}
	if t.compare && len(reports) == 2 {
		if len(answers) == len(t.cities) {
			t.asked++
			return step{calls: []ScriptCall{difference(reports[0].TempC, reports[1].TempC)}}
		}
		parts = append(parts, t.difference(answers[len(t.cities)]))
	}
	return step{say: strings.Join(parts, t.pick(", ", ",")) + t.pick(".", "。")}
}

func (t *weatherTurn) report(city string, a answer, first bool) (weather, string) {
	var report weather
	if !a.success {
		return report, fmt.Sprintf(t.pick("the weather of %s is unknown (%s)", "%s的天气查询失败(%s)"), city, a.text)
	}
	if err := json.Unmarshal([]byte(a.text), &report); err != nil || report.TempC == "" {
		return weather{}, fmt.Sprintf(t.pick("%s: %s", "%s:%s"), city, a.text)
	}
	today := ""
	if first {
		today = t.pick(" today", "今天")
	}
	if t.language == chinese {
		return report, fmt.Sprintf("%s%s%s、%s 度", city, today, report.Weather, report.TempC)
	}
	return report, fmt.Sprintf("%s%s: %s, %s degrees", city, today, report.Weather, report.TempC)
}

func (t *weatherTurn) difference(a answer) string {
	var out struct {
		Result json.Number `json:"result"`
	}
	if !a.success || json.Unmarshal([]byte(a.text), &out) != nil || out.Result == "" {
		return fmt.Sprintf(t.pick("the difference could not be computed (%s)", "温差计算失败(%s)"), a.text)
	}
	return fmt.Sprintf(t.pick("a difference of %s degrees", "两地温差 %s 度"), out.Result)
}

// difference subtracts the lower temperature from the higher one.
func difference(a, b json.Number) ScriptCall {
	x, okX := new(big.Rat).SetString(a.String())
	y, okY := new(big.Rat).SetString(b.String())
	if okX && okY && x.Cmp(y) < 0 {
		a, b = b, a
	}
	return ScriptCall{Name: "calculate", Arguments: json.RawMessage(fmt.Sprintf(`{"a":%s,"b":%s,"op":"sub"}`, a, b))}
}

func callWith(name string, args map[string]any) ScriptCall {
	raw, err := json.Marshal(args)
	if err != nil {
		raw = []byte("{}")
	}
	return ScriptCall{Name: name, Arguments: raw}
}

func asksWeather(lower string) bool {
	for _, word := range []string{"weather", "天气", "多少度", "温差", "晨跑", "degrees", "jog"} {
		if strings.Contains(lower, word) {
			return true
		}
	}
	return false
}

var (
	englishPair = regexp.MustCompile(`([A-Z][\p{L}]+(?: [A-Z][\p{L}]+)?) and ([A-Z][\p{L}]+(?: [A-Z][\p{L}]+)?)`)
	englishOne  = regexp.MustCompile(`\b(?:in|of|for) ([A-Z][\p{L}]+(?: [A-Z][\p{L}]+)?)`)
	chinesePair = regexp.MustCompile(`(\p{Han}{2,4}?)[和与](\p{Han}{2,4}?)(?:今天|现在|两地|的|各)`)
	chineseOne  = regexp.MustCompile(`(北京|上海|广州|深圳|杭州|成都|\p{Han}{2,3}?)(?:今天|现在|的天气|天气|还适合)`)
)

func findCities(text string, l language) []string {
	pair, one := englishPair, englishOne
	if l == chinese {
		pair, one = chinesePair, chineseOne
	}
	if m := pair.FindStringSubmatch(text); m != nil {
		return m[1:]
	}
	if m := one.FindStringSubmatch(strings.TrimPrefix(text, "这个点")); m != nil {
		return m[1:]
	}
	return nil
}
