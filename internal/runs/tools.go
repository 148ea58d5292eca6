package runs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/callfan/callfan/internal/toollist"
	"github.com/callfan/callfan/pkg/call"
)

// resolve makes the list of tools that the API gets. An element that is a name, or a tool
// of type function or custom without what the registry knows, is completed from what is
// registered; "crm.find" belongs to the namespace crm. All else goes to the API as it is.
func (r *Request) resolve(functions Functions) (json.RawMessage, error) {
	var tools toollist.Namespaces
	for i, raw := range r.tools {
		bad := func(err error) error { return fmt.Errorf("%w: tools[%d]: %w", ErrInvalidRequest, i, err) }
		var name string
		if json.Unmarshal(raw, &name) != nil {
			tool, err := completed(raw, "", functions)
			if err != nil {
				return nil, bad(err)
			}
			tools.Add("", tool)
			continue
		}
		space, rest, err := toollist.Split(name)
		if err != nil {
			return nil, bad(err)
		}
		var entry object
		entry.text("type", "function")
		entry.text("name", rest)
		tool, err := completed(entry.end(), space, functions)
		if err != nil {
			return nil, bad(err)
		}
		tools.Add(space, tool)
	}
	return array(tools.Tools()), nil
}

// completed adds to a tool what the registry knows and the tool does not say.
func completed(raw json.RawMessage, space string, functions Functions) (json.RawMessage, error) {
	members, err := readMembers(raw)
	if err != nil {
		return nil, err
	}
	get := func(name string) (text string, has bool) {
		for _, m := range members {
			if m.name == name {
				_ = json.Unmarshal(m.value, &text)
				return text, true
			}
		}
		return "", false
	}
	kind, _ := get("type")
	name, _ := get("name")
	switch {
	case kind == "namespace":
		return completedSpace(members, name, functions)
	case kind != "function" && kind != "custom":
		return raw, nil
	}
	_, described := get("parameters")
	if kind == "custom" {
		_, described = get("description")
	}
	if described {
		return raw, nil
	}
	if space != "" {
		name = space + "." + name
	}
	f, ok := functions.Function(name)
	if !ok {
		return nil, fmt.Errorf("no executor has registered the function %q; start one, or give the tool in full", name)
	}
	var tool object
	for _, m := range members {
		tool.add(m.name, m.value)
	}
	if _, has := get("description"); !has && f.Description != "" {
		tool.text("description", f.Description)
	}
	if kind == "function" {
		parameters := toollist.Parameters(f)
		tool.add("parameters", parameters)
		if _, has := get("strict"); !has {
			tool.add("strict", json.RawMessage(fmt.Sprint(len(toollist.NotStrict(parameters)) == 0)))
		}
	}
	return tool.end(), nil
}

func completedSpace(members []member, space string, functions Functions) (json.RawMessage, error) {
	var out object
	for _, m := range members {
		if m.name == "tools" {
			var tools []json.RawMessage
			if err := json.Unmarshal(m.value, &tools); err != nil {
				return nil, fmt.Errorf("namespace %s: tools: %w", space, err)
			}
			for i, raw := range tools {
				tool, err := completed(raw, space, functions)
				if err != nil {
					return nil, err
				}
				tools[i] = tool
			}
			m.value = array(tools)
		}
		out.add(m.name, m.value)
	}
	return out.end(), nil
}

// maxFound is how many functions a search loads.
const maxFound = 8

// search answers a tool search that the client executes: the registered functions that
// have the most of the words that the model looks for.
func search(it item, functions Functions) json.RawMessage {
	words := wordsOf(it.Arguments)
	type hit struct {
		f     call.Function
		score int
	}
	var hits []hit
	for _, f := range functions.Functions() {
		if space, _, err := toollist.Split(f.Name); space != "" || err != nil {
			continue // a namespace would have to be listed as a whole; other names the API refuses
		}
		text := strings.ToLower(f.Name + " " + f.Description)
		score := 0
		for _, w := range words {
			if strings.Contains(text, w) {
				score++
			}
		}
		if score > 0 {
			hits = append(hits, hit{f, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return b.score - a.score })
	// Half of the best's words: "the" alone finds nothing.
	hits = slices.DeleteFunc(hits, func(h hit) bool { return 2*h.score < hits[0].score })
	var tools []json.RawMessage
	for _, h := range hits[:min(len(hits), maxFound)] {
		tool, _ := toollist.ForResponses(h.f, true)
		tools = append(tools, tool)
	}
	var out object
	out.text("type", "tool_search_output")
	out.text("call_id", it.CallID)
	out.text("execution", "client")
	out.text("status", "completed")
	out.add("tools", array(tools))
	return out.end()
}

// wordsOf are the words of all texts in a JSON value, of three letters and more.
func wordsOf(raw json.RawMessage) []string {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return nil
	}
	if text, ok := value.(string); ok && json.Unmarshal([]byte(text), &value) != nil {
		value = text // the arguments may be an object in a string
	}
	var words []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			for w := range strings.FieldsSeq(strings.ToLower(v)) {
				if w = strings.Trim(w, ".,;:!?\"'()"); len(w) >= 3 {
					words = append(words, w)
				}
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(value)
	slices.Sort(words)
	return slices.Compact(words)
}
