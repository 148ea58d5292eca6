package simulator

import (
	"encoding/json"
	"regexp"
	"strings"
)

var requested = regexp.MustCompile(`(?i)\bcall ([A-Za-z0-9_-]+) with (\{)`)

// requestTurn does what a text says in so many words, such as: Call f with {"a": 1}.
type requestTurn struct {
	call  ScriptCall
	asked bool
}

// requestIn finds such words, for a function that has is true of.
func requestIn(text string, has func(names ...string) bool) (*requestTurn, bool) {
	match := requested.FindStringSubmatchIndex(text)
	if match == nil || !has(text[match[2]:match[3]]) {
		return nil, false
	}
	var arguments json.RawMessage
	if json.NewDecoder(strings.NewReader(text[match[4]:])).Decode(&arguments) != nil {
		return nil, false
	}
	return &requestTurn{call: ScriptCall{Name: text[match[2]:match[3]], Arguments: arguments}}, true
}

func (t *requestTurn) next(all func() []answer) step {
	if !t.asked {
		t.asked = true
		return step{calls: []ScriptCall{t.call}}
	}
	var texts []string
	for _, a := range all() {
		texts = append(texts, a.text)
	}
	return step{say: strings.Join(texts, " ")}
}
