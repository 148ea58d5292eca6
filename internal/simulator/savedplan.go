package simulator

import (
	"fmt"
)

// savedPlan is a planner in the state file.
type savedPlan struct {
	Kind string `json:"kind"`
	// Rounds to Round are those of a script; played rounds are null.
	Rounds     [][]savedScriptCall `json:"rounds,omitempty"`
	Say        string              `json:"say,omitempty"`
	SayResults bool                `json:"say_results,omitempty"`
	Fail       string              `json:"fail,omitempty"`
	Round      int                 `json:"round,omitempty"`
	// The rest is the built-in model's.
	Chinese  bool     `json:"chinese,omitempty"`
	Names    []string `json:"names,omitempty"` // customers, cities
	WithTime bool     `json:"with_time,omitempty"`
	Compare  bool     `json:"compare,omitempty"`
	Asked    int      `json:"asked,omitempty"`
}

const (
	planScript    = "script"
	planSay       = "say"
	planCustomers = "customers"
	planWeather   = "weather"
	planTime      = "time"
)

// savedScriptCall keeps the arguments as bytes: as JSON they would be spelled anew.
type savedScriptCall struct {
	Name         string `json:"name"`
	Arguments    []byte `json:"arguments"`
	CallID       string `json:"call_id,omitempty"`
	AfterResults int    `json:"after_results,omitempty"`
	AfterMS      int    `json:"after_ms,omitempty"`
}

func saveScriptCall(c ScriptCall) savedScriptCall {
	return savedScriptCall{
		Name: c.Name, Arguments: c.Arguments, CallID: c.CallID, AfterResults: c.AfterResults, AfterMS: c.AfterMS,
	}
}

func (c savedScriptCall) restore() ScriptCall {
	return ScriptCall{
		Name: c.Name, Arguments: c.Arguments, CallID: c.CallID, AfterResults: c.AfterResults, AfterMS: c.AfterMS,
	}
}

// each applies f to a list; nil stays nil.
func each[In, Out any](list []In, f func(In) Out) []Out {
	if list == nil {
		return nil
	}
	out := make([]Out, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}

// savePlan copies a plan; nil has none.
func savePlan(p planner) *savedPlan {
	switch p := p.(type) {
	case *scriptedTurn:
		return &savedPlan{
			Kind: planScript, Say: p.script.Say, SayResults: p.script.SayResults, Fail: p.script.Fail, Round: p.round,
			Rounds: each(p.script.Rounds, func(round []ScriptCall) []savedScriptCall { return each(round, saveScriptCall) }),
		}
	case sayTurn:
		return &savedPlan{Kind: planSay, Say: string(p)}
	case *customerTurn:
		return &savedPlan{Kind: planCustomers, Chinese: bool(p.language), Names: p.ids, Asked: asNumber(p.asked)}
	case *timeTurn:
		return &savedPlan{Kind: planTime, Chinese: bool(p.language), Asked: asNumber(p.asked)}
	case *weatherTurn:
		return &savedPlan{
			Kind: planWeather, Chinese: bool(p.language), Names: p.cities, WithTime: p.withTime, Compare: p.compare,
			Asked: p.asked,
		}
	default:
		return nil
	}
}

func asNumber(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (p *savedPlan) restore() (planner, error) {
	if p == nil {
		return nil, nil
	}
	l := language(p.Chinese)
	switch p.Kind {
	case planScript:
		return &scriptedTurn{round: p.Round, script: Script{
			Say: p.Say, SayResults: p.SayResults, Fail: p.Fail,
			Rounds: each(p.Rounds, func(round []savedScriptCall) []ScriptCall { return each(round, savedScriptCall.restore) }),
		}}, nil
	case planSay:
		return sayTurn(p.Say), nil
	case planCustomers:
		return &customerTurn{language: l, ids: p.Names, asked: p.Asked > 0}, nil
	case planTime:
		return &timeTurn{language: l, asked: p.Asked > 0}, nil
	case planWeather:
		return &weatherTurn{language: l, cities: p.Names, withTime: p.WithTime, compare: p.Compare, asked: p.Asked}, nil
	default:
		return nil, fmt.Errorf("plan %q is unknown", p.Kind)
	}
}
