package simulator

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// load makes sure that the tools of calls can be used. Where they have to be searched for first, it speaks the search:
// the service's own is done at once and the calls follow; a client's search ends the response (done).
func (t *thinker) load(calls []ScriptCall) (done bool, err error) {
	var absent []string
	for _, c := range calls {
		if tl, ok := t.tool(c); !ok || tl.deferred {
			absent = append(absent, toolPath(c))
		}
	}
	if len(absent) == 0 {
		return false, nil
	}
	search, ok := searchTool(t.task.tools)
	switch {
	case !ok:
		return false, invalidRequest("The script calls %q, which is not in tools, or deferred without a tool_search.", absent[0])
	case search.execution == "server":
		return false, t.searchHere(absent)
	case t.searched:
		l := languageOf(t.text)
		t.end(step{say: l.pick("I did not find the tool ", "没有找到工具 ") + strings.Join(absent, ", ") + l.pick(".", "。")})
		return true, nil
	}
	t.reason()
	arguments, err := json.Marshal(map[string]string{queryField(search.parameters): strings.Join(absent, " ")})
	if err != nil {
		return false, err
	}
	t.out.Items = append(t.out.Items, utterance{
		ID: newID("tsc_"), Kind: kindSearchCall, CallID: newID("call_"), Text: string(arguments), Execution: "client",
	})
	return true, nil
}

func toolPath(c ScriptCall) string {
	if c.Type == "tool_search" {
		return c.Type
	}
	if c.Namespace != "" {
		return c.Namespace + "." + c.Name
	}
	return c.Name
}

// searchHere is the search that the service runs itself: it loads deferred tools.
func (t *thinker) searchHere(absent []string) error {
	arguments, err := json.Marshal(map[string]any{"paths": absent})
	if err != nil {
		return err
	}
	var found []json.RawMessage
	for i := range t.task.tools {
		tl := &t.task.tools[i]
		if slices.Contains(absent, tl.name) || slices.Contains(absent, tl.namespace+"."+tl.name) {
			tl.deferred = false
			absent = slices.DeleteFunc(absent, func(name string) bool {
				return name == tl.name || name == tl.namespace+"."+tl.name
			})
			if raw, ok := rawTool(t.task.rawTools, tl); ok {
				found = append(found, raw)
			}
		}
	}
	if len(absent) > 0 {
		return invalidRequest("The script calls %q, which is not in tools.", absent[0])
	}
	t.reason()
	t.out.Items = append(t.out.Items,
		utterance{ID: newID("tsc_"), Kind: kindSearchCall, Text: string(arguments), Execution: "server"},
		utterance{ID: newID("tso_"), Kind: kindSearchOutput, Tools: joinRaw(found), Execution: "server"})
	return nil
}

// rawTool returns the definition that a tool came from; that of a namespace as a whole.
func rawTool(tools json.RawMessage, want *responseTool) (json.RawMessage, bool) {
	var entries []json.RawMessage
	if json.Unmarshal(tools, &entries) != nil {
		return nil, false
	}
	for _, entry := range entries {
		var fields struct{ Name string }
		if json.Unmarshal(entry, &fields) == nil && fields.Name == cmp.Or(want.namespace, want.name) {
			return entry, true
		}
	}
	return nil, false
}

func joinRaw(list []json.RawMessage) json.RawMessage {
	b := []byte{'['}
	for i, raw := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, raw...)
	}
	return append(b, ']')
}

// queryField is the first text field of a search's own parameters, or "query".
func queryField(parameters json.RawMessage) string {
	var schema struct {
		Properties map[string]struct{ Type any } `json:"properties"`
	}
	if json.Unmarshal(parameters, &schema) == nil {
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			if schema.Properties[name].Type == "string" {
				return name
			}
		}
	}
	return "query"
}
