package conformance

import (
	"encoding/json"
	"slices"

	"github.com/callfan/callfan/pkg/call"
)

func registrationChecks() []check {
	return []check{
		core("registration/functions", func(t *trial) { t.definitions(LevelCore) }),
		full("registration/functions-full", func(t *trial) { t.definitions(LevelFull) }),
		core("registration/executor", registrationExecutor),
		full("registration/names-of-the-pool", registrationNames),
	}
}

// definitions checks what was registered for the functions of that level.
func (t *trial) definitions(level Level) {
	for _, f := range functions {
		if f.level != level {
			continue
		}
		for _, reg := range t.registeredAs(f.name) {
			t.definition(f, reg)
		}
	}
}

func (t *trial) definition(f function, reg registration) {
	if reg.token != call.Token(f.name) {
		t.failf("function %q was registered on the token %q; want %q", f.name, reg.token, call.Token(f.name))
	}
	if reg.Protocol != 1 || reg.Pool != pool {
		t.failf("function %q was registered with protocol %d and pool %q; want 1 and %q", f.name, reg.Protocol, reg.Pool, pool)
	}
	if reg.Function.Description == "" {
		t.failf("function %q has no description", f.name)
	}
	var schema struct {
		Type       string `json:"type"`
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(reg.Function.Parameters, &schema); err != nil || schema.Type != "object" {
		t.failf("function %q has the parameters %s; want a JSON Schema of an object", f.name, shorten(string(reg.Function.Parameters)))
	}
	for property, want := range f.properties {
		if p, ok := schema.Properties[property]; !ok || !hasType(p.Type, want) {
			t.failf("function %q has the parameters %s; want a property %s of type %s", f.name, shorten(string(reg.Function.Parameters)), property, want)
		}
	}
	declared := call.Function{Policy: reg.Function.Policy, Verifies: reg.Function.Verifies}.WithDefaults()
	want := call.Function{Policy: f.policy, Verifies: f.verifies}.WithDefaults()
	if declared != want || reg.Function.Verifies != f.verifies {
		t.failf("function %q was registered with the policy %+v, verifies %t; want %+v, %t", f.name, declared, reg.Function.Verifies, want, f.verifies)
	}
}

// hasType says whether a schema's type, one or a list, allows the wanted one.
func hasType(have any, want string) bool {
	list, many := have.([]any)
	if !many {
		list = []any{have}
	}
	return slices.Contains(list, any(want))
}

func registrationExecutor(t *trial) {
	for _, reg := range t.registeredAs("echo") {
		if reg.Executor.Language == "" || reg.Executor.ID == "" {
			t.failf("the registration has the executor %+v; want its language and an id", reg.Executor)
		}
	}
}

func registrationNames(t *trial) {
	for _, f := range functions {
		for _, reg := range t.registeredAs(f.name) {
			for _, other := range functions {
				if !slices.Contains(reg.Functions, other.name) {
					t.failf("the registration of %q does not list %q among the functions of the executor", f.name, other.name)
				}
			}
		}
	}
}
