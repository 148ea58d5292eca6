package toollist

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/callfan/callfan/pkg/call"
)

// What the Responses API takes as names of functions and namespaces.
var (
	functionName  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
	namespaceName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
)

// Split takes the name by which executors register a function apart, as the Responses API names it: crm.find is find in
// the namespace crm; a name without a dot is in none. The error is about a name that the API does not take.
func Split(name string) (space, rest string, err error) {
	space, rest, spaced := strings.Cut(name, ".")
	if !spaced {
		space, rest = "", name
	}
	if !functionName.MatchString(rest) || spaced && !namespaceName.MatchString(space) {
		return "", "", fmt.Errorf("function %q: the Responses API takes names of 1 to 128 letters, digits, underscores and dashes only, "+
			"with a namespace of at most 64 and a dot before them; name the functions that you want without it", name)
	}
	return space, rest, nil
}

// ForResponses makes a tool of the Responses API, strict where the schema allows it; why says what does not. The name is f's
// own, without a namespace.
func ForResponses(f call.Function, deferred bool) (tool json.RawMessage, why []string) {
	why = NotStrict(Parameters(f))
	tool = appendFunction(nil, f, false, false)
	tool = fmt.Appendf(tool[:len(tool)-1], `,"strict":%t`, len(why) == 0)
	if deferred {
		tool = append(tool, `,"defer_loading":true`...)
	}
	return append(tool, '}'), why
}

// Namespaces collects tools of the Responses API. Those of one namespace become one tool, in the place of its first one.
// The zero value is empty.
type Namespaces struct {
	tools  []json.RawMessage
	places map[string]int
	inner  map[string][]json.RawMessage
}

// Add adds a tool to a namespace; with an empty one it stands for itself.
func (n *Namespaces) Add(space string, tool json.RawMessage) {
	if space == "" {
		n.tools = append(n.tools, tool)
		return
	}
	if _, known := n.places[space]; !known {
		if n.places == nil {
			n.places, n.inner = map[string]int{}, map[string][]json.RawMessage{}
		}
		n.places[space] = len(n.tools)
		n.tools = append(n.tools, nil)
	}
	n.inner[space] = append(n.inner[space], tool)
}

// Tools are the collected ones.
func (n *Namespaces) Tools() []json.RawMessage {
	for space, at := range n.places {
		tool := appendText([]byte(`{"type":"namespace","name":`), space)
		tool = appendText(append(tool, `,"description":`...), "The functions of "+space+".")
		tool = append(tool, `,"tools":[`...)
		for i, inner := range n.inner[space] {
			if i > 0 {
				tool = append(tool, ',')
			}
			tool = append(tool, inner...)
		}
		n.tools[at] = append(tool, "]}"...)
	}
	return n.tools
}
