//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/callfan/callfan/test/chaos/effects"
)

// workload asks for calls at a steady rate, whether they are answered or not.
type workload struct {
	api  *api
	rng  *rand.Rand
	pick []effects.Function // by weight

	mu       sync.Mutex
	sessions []*conversation
	// planned are all calls by their number.
	planned map[string]*plannedCall
	posting sync.WaitGroup
	turns   int
}

// conversation is one session. It has one turn at a time.
type conversation struct {
	id     string
	open   []*plannedCall // of the current turn; those of later rounds are not listed yet
	posted bool           // the current turn has begun
}

// plannedCall is one call of a script and what became of it.
type plannedCall struct {
	number   string
	function effects.Function
	// listed and answered are when the watcher saw the call required and its result accepted.
	listed, answered time.Time
	key              string // session/turn/call
	success          bool
	text             string // the output or the error, as JSON
	seen             int    // how many calls of the session carried the number
}

func newWorkload(a *api, rng *rand.Rand) *workload {
	w := &workload{api: a, rng: rng, planned: map[string]*plannedCall{}}
	for _, f := range effects.Functions() {
		for range f.Weight {
			w.pick = append(w.pick, f)
		}
	}
	return w
}

// run posts turns until ctx ends, and returns when the last one was taken. Turns are taken whatever the API's faults are,
// within patience.
func (w *workload) run(ctx, patience context.Context, rate float64) {
	began, asked := time.Now(), 0
	for sleep(ctx, max(0, time.Until(began.Add(time.Duration(float64(asked)/rate*float64(time.Second)))))) {
		script, calls := w.script()
		asked += len(calls)
		c := w.conversation(calls)
		w.posting.Go(func() { w.post(patience, c, script, calls) })
	}
	w.posting.Wait()
}

// script makes up a turn of one to three rounds with 1 to 32 parallel calls.
func (w *workload) script() (string, []*plannedCall) {
	w.turns++
	var rounds []string
	var calls []*plannedCall
	for range 1 + w.rng.IntN(3) {
		var round []string
		for range w.width() {
			f := w.pick[w.rng.IntN(len(w.pick))]
			c := &plannedCall{number: fmt.Sprintf("t%d-c%d", w.turns, len(calls)), function: f}
			fails := 0
			if f.Name == "flaky" {
				fails = w.rng.IntN(3)
			}
			calls = append(calls, c)
			round = append(round, fmt.Sprintf(`{"name":%q,"arguments":{"n":%q,"ms":%d,"fails":%d}}`, f.Name, c.number, w.work(), fails))
		}
		rounds = append(rounds, "["+strings.Join(round, ",")+"]")
	}
	return `{"rounds":[` + strings.Join(rounds, ",") + `],"say":"done"}`, calls
}

// width is the number of parallel calls of a round.
func (w *workload) width() int {
	switch n := w.rng.IntN(100); {
	case n < 50:
		return 1 + w.rng.IntN(4)
	case n < 85:
		return 5 + w.rng.IntN(8)
	default:
		return 13 + w.rng.IntN(20)
	}
}

// work is how long a handler runs, in milliseconds: mostly short, sometimes longer than the lease of a call.
func (w *workload) work() int {
	switch n := w.rng.IntN(100); {
	case n < 90:
		return 2 + w.rng.IntN(100)
	case n < 98:
		return 500 + w.rng.IntN(2500)
	default:
		return 5000 + w.rng.IntN(4000)
	}
}

// conversation is a session that has no turn, or a new one.
func (w *workload) conversation(calls []*plannedCall) *conversation {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range calls {
		w.planned[c.number] = c
	}
	var idle []*conversation
	for _, c := range w.sessions {
		if len(c.open) == 0 {
			idle = append(idle, c)
		}
	}
	var c *conversation
	if len(idle) > 0 && w.rng.IntN(8) > 0 {
		c = idle[w.rng.IntN(len(idle))]
	} else {
		c = &conversation{}
		w.sessions = append(w.sessions, c)
	}
	c.open, c.posted = calls, false
	return c
}

// post gives the script to the session and makes sure that the turn has begun. The API may lose a message that it
// accepted, or only its answer. A session that has a turn would queue another message, so it is asked first.
func (w *workload) post(ctx context.Context, c *conversation, script string, calls []*plannedCall) {
	text, _ := json.Marshal(script) // a string always is JSON
	for ctx.Err() == nil {
		switch {
		case c.id == "":
			c.id = w.create(ctx, string(text))
		case w.begun(c.id, calls[0].number):
			w.mu.Lock()
			c.posted = true
			w.mu.Unlock()
			return
		case w.status(ctx, c.id) == "idle":
			body := `{"events":[{"type":"agent.session.input.message","input":` + string(text) + `}]}`
			w.request(ctx, http.MethodPost, "/agents/sessions/"+c.id+"/events", body, nil)
			continue
		}
		sleep(ctx, 50*time.Millisecond)
	}
}

// status is the session's own, empty when the API does not tell.
func (w *workload) status(ctx context.Context, id string) string {
	var session struct {
		Status string `json:"status"`
	}
	w.request(ctx, http.MethodGet, "/agents/sessions/"+id, "", &session)
	return session.Status
}

// create makes a session with the script as its first input; empty when that failed.
func (w *workload) create(ctx context.Context, text string) string {
	var tools []string
	for _, f := range effects.Functions() {
		tools = append(tools, fmt.Sprintf(`{"type":"function","name":%q,"description":"d","parameters":{"type":"object"}}`, f.Name))
	}
	var session struct {
		ID string `json:"id"`
	}
	w.request(ctx, http.MethodPost, "/agents/sessions", fmt.Sprintf(`{"agent":{"model":"gpt-6-astra","tools":[%s]},"environment":{"type":"none"},`+
		`"metadata":{"chaos":"yes"},"input":%s}`, strings.Join(tools, ","), text), &session)
	return session.ID
}

// begun says whether the turn of that call has begun: the simulator lists calls at once.
func (w *workload) begun(session, number string) bool {
	results, err := w.api.sim.Results(session)
	if err != nil {
		return false
	}
	for _, r := range results {
		if numberOf(r.Arguments) == number {
			return true
		}
	}
	return false
}

func numberOf(arguments []byte) string {
	var a struct {
		Number string `json:"n"`
	}
	_ = json.Unmarshal(arguments, &a) // the zero number is no call's
	return a.Number
}

// request makes a request of the user's; what fails is seen by begun.
func (w *workload) request(ctx context.Context, method, path, body string, into any) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, w.api.url+path, strings.NewReader(body))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer user")
	req.Header.Set("OpenAI-Beta", "agents=v1")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && into != nil && resp.StatusCode < 300 {
		_ = json.Unmarshal(answer, into) // an unreadable answer is none
	}
}
