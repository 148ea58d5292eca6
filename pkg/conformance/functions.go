package conformance

import (
	"strings"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// function is what protocol/conformance.md says about a function.
type function struct {
	name       string
	level      Level
	properties map[string]string // by type
	policy     call.Policy
	verifies   bool
}

var (
	unicodeName = "sag mir, wo ☂.*>"
	longName    = "a/" + strings.Repeat("n", 300)

	readOnly   = call.Policy{Effects: call.EffectsNone}
	repeatable = call.Policy{Effects: call.EffectsIdempotent}
	effectful  = call.Policy{Effects: call.EffectsSideEffects}
)

// functions are those that a conformance executor serves.
var functions = []function{
	{name: "echo", level: LevelCore, policy: readOnly},
	{name: "fail", level: LevelCore, policy: readOnly, properties: map[string]string{"text": "string"}},
	{
		name: "retry", level: LevelCore, policy: call.Policy{Effects: call.EffectsIdempotent, Attempts: 5},
		properties: map[string]string{"after_ms": "integer", "ok_at": "integer"},
	},
	{name: "sleep", level: LevelCore, policy: repeatable, properties: map[string]string{"ms": "integer"}},
	{name: "key", level: LevelCore, policy: repeatable},
	{name: "pay_blind", level: LevelCore, policy: effectful, properties: map[string]string{"ms": "integer"}},
	{name: "text", level: LevelFull, policy: readOnly, properties: map[string]string{"text": "string"}},
	{name: "parts", level: LevelFull, policy: readOnly},
	{name: "object", level: LevelFull, policy: readOnly},
	{name: "nothing", level: LevelFull, policy: readOnly},
	{name: "crash", level: LevelFull, policy: readOnly},
	{name: "typed", level: LevelFull, policy: readOnly, properties: map[string]string{"count": "integer"}},
	{name: "block", level: LevelCore, policy: repeatable, properties: map[string]string{"ms": "integer"}},
	{name: "stuck", level: LevelFull, policy: call.Policy{Effects: call.EffectsNone, Timeout: call.Duration(time.Second), Attempts: 1}},
	{name: "exit", level: LevelFull, policy: repeatable, properties: map[string]string{"unless": "string"}},
	{name: "pay", level: LevelFull, policy: effectful, verifies: true, properties: map[string]string{"verdict": "string", "ms": "integer"}},
	{
		name: "pay_park", level: LevelFull, policy: call.Policy{Effects: call.EffectsSideEffects, OnUncertain: call.UncertainPark},
		properties: map[string]string{"ms": "integer"},
	},
	{name: "large", level: LevelFull, policy: readOnly, properties: map[string]string{"bytes": "integer"}},
	{name: unicodeName, level: LevelFull, policy: readOnly},
	{name: longName, level: LevelFull, policy: readOnly},
}
