package simulator

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strings"
)

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

func asksWeather(lower string) bool {
	for _, word := range []string{
		"weather", "天气", "多少度", "几度", "温差", "更热", "更冷", "晨跑", "穿什么", "degrees", "hotter", "colder", "warmer", "jog", "wear",
	} {
		if strings.Contains(lower, word) {
			return true
		}
	}
	return false
}

var (
	englishPair = regexp.MustCompile(`([A-Z][\p{L}]+(?: [A-Z][\p{L}]+)?) (?:and|or) ([A-Z][\p{L}]+(?: [A-Z][\p{L}]+)?)`)
	englishOne  = regexp.MustCompile(`\b(?:in|of|for) ([A-Z][\p{L}]+(?: [A-Z][\p{L}]+)?)`)
	chinesePair = regexp.MustCompile(`(\p{Han}{2,4}?)[和与](\p{Han}{2,4}?)(?:今天|现在|两地|的|各|哪)`)
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
