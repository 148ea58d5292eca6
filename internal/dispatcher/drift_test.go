package dispatcher

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

func TestDriftIsReportedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.function.Parameters = json.RawMessage(`{"type":"object","required":["a"]}`)
		show := func(tools string) []string {
			b.api.mu.Lock()
			b.api.tools = tools
			b.api.mu.Unlock()
			wait(10 * time.Minute) // several looks
			return b.d.Sessions()[0].Drift
		}
		count := &counted{}
		b.run(t, Config{Observer: count}, func() {
			wait(time.Second)
			require.Empty(t, b.d.Sessions()[0].Drift)
			const other = `[{"type":"mcp","server_label":"f"},{"type":"function","name":"g","description":"","parameters":{"type":"array"}}]`
			require.Empty(t, show(other), "neither registered functions nor other tools")
			const old = `[{"type":"function","name":"f","description":"","parameters":{"type":"object"}}]`
			require.Equal(t, []string{"f"}, show(old))
			require.Equal(t, []string{"f"}, show(old+" "))
			require.Equal(t, 1, count.of(EventToolDrift))
			require.Empty(t, show(`[{"type":"function","name":"f","description":"","parameters":{ "required": ["a"] }}]`))
			require.Equal(t, []string{"f"}, show(old))
			require.Equal(t, 2, count.of(EventToolDrift), "it came back")
			require.Equal(t, []string{"f"}, show(""), "what the API does not show is not compared")
			require.Empty(t, show("[]"))
			require.Empty(t, show("{"))
		})
	})
}

func TestListsThatDidNotChangeAreNotRead(t *testing.T) {
	t.Parallel()
	functions := &counting{knows: knows{"f": call.Function{Name: "f"}}, changed: make(chan struct{})}
	s := &session{d: &Dispatcher{functions: functions, obs: noObserver{}}}
	list := json.RawMessage(`[{"type":"function","name":"f","description":"","parameters":{"type":"object"}}]`)
	for range 3 {
		s.compareTools(list)
	}
	require.Equal(t, 1, functions.asked)
	functions.changed = make(chan struct{})
	s.compareTools(list)
	require.Equal(t, 2, functions.asked)
}

// counting counts the questions about functions.
type counting struct {
	knows

	changed chan struct{}
	asked   int
}

func (c *counting) Function(name string) (call.Function, bool) {
	c.asked++
	return c.knows.Function(name)
}
func (c *counting) Changed() <-chan struct{} { return c.changed }
