package toollist_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/toollist"
	"github.com/callfan/callfan/pkg/call"
)

func raws(tools ...string) []json.RawMessage {
	var list []json.RawMessage
	for _, tool := range tools {
		list = append(list, json.RawMessage(tool))
	}
	return list
}

func texts(list []json.RawMessage) []string {
	var out []string
	for _, raw := range list {
		out = append(out, string(raw))
	}
	return out
}

func TestPlans(t *testing.T) {
	t.Parallel()
	const (
		same   = `{"type":"function","name":"same","description":"s","defer_loading":false,"async":false,"parameters":{"required":["b","a"],"type":"object"}}`
		old    = `{"type":"function","name":"old","description":"o","defer_loading":true,"async":true,"parameters":{"type":"object","properties":{"n":{"type":"string"}}}}`
		alien  = `{"type":"function","name":"alien","description":"","defer_loading":false,"async":false,"parameters":{"type":"object"}}`
		known  = `{"type":"function","name":"known","description":"","defer_loading":false,"async":false,"parameters":{"type":"object"}}`
		search = `{"type":"tool_search"}`
		web    = `{"type":"web_search","location":null,"mode":"live"}`
		mcp    = `{"type":"mcp","server_label":"crm","transport":{"type":"http","server_url":"https://example.com"}}`
	)
	current := raws(web, same, old, alien, known, mcp)
	wanted := toollist.Wanted{
		Functions: []call.Function{
			fn("same", "s", `{ "type":"object", "required":["a","b"] }`), fn("old", "o", `{"type":"object","properties":{ "n":{"type":"integer"} }}`),
			fn("new", "", ""),
		},
		Registered: []string{"same", "old", "new", "known"},
	}
	p := toollist.Compare(current, wanted)
	require.Len(t, p.Changes, 2)
	require.Equal(t, toollist.Changed, p.Changes[0].Kind)
	require.Equal(t, `  parameters: {
    "properties": {
      "n": {
-       "type": "string"
+       "type": "integer"
      }
    },
    "type": "object"
  …`, strings.Join(p.Changes[0].Lines, "\n"))
	require.Equal(t, toollist.Change{Kind: toollist.Added, Name: "new", Lines: []string{`+ parameters: {`, `+   "type": "object"`, `+ }`}}, p.Changes[1])
	require.Empty(t, p.Hidden)
	require.Equal(t, []string{
		`{"mode":"live","type":"web_search"}`, same,
		`{"type":"function","name":"old","description":"o","parameters":{"type":"object","properties":{ "n":{"type":"integer"} }},"async":true,"defer_loading":true}`,
		alien, known, mcp, `{"type":"function","name":"new","description":"","parameters":{"type":"object"}}`,
	}, texts(p.Tools))
	require.Empty(t, toollist.Compare(p.Tools, wanted).Changes)

	// What nobody registered goes, what was not asked for stays.
	wanted.Prune = true
	p = toollist.Compare(current, wanted)
	require.Equal(t, "alien", p.Changes[1].Name)
	require.Equal(t, toollist.Removed, p.Changes[1].Kind)
	require.Contains(t, texts(p.Tools), known)
	require.NotContains(t, texts(p.Tools), alien)

	// A session hides tool search and the headers of MCP servers.
	wanted.Session = true
	p = toollist.Compare(current, wanted)
	require.Equal(t, []string{"crm"}, p.Hidden)
	require.Equal(t, search, texts(p.Tools)[len(p.Tools)-1])
	require.Empty(t, toollist.Compare(raws(same), toollist.Wanted{Functions: wanted.Functions[:1], Session: true, ToolSearch: true}).Changes)

	// An agent shows it.
	p = toollist.Compare(raws(same), toollist.Wanted{Functions: wanted.Functions[:1], ToolSearch: true, DeferLoading: true})
	require.Equal(t, []toollist.Kind{toollist.Changed, toollist.Added}, []toollist.Kind{p.Changes[0].Kind, p.Changes[1].Kind})
	require.Equal(t, []string{`+ defer_loading: true`}, p.Changes[0].Lines[1:2])
	require.Empty(t, toollist.Compare(p.Tools, toollist.Wanted{Functions: wanted.Functions[:1], ToolSearch: true, DeferLoading: true}).Changes)
}
