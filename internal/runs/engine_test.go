package runs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/callfan/callfan/internal/runs"
	"github.com/callfan/callfan/internal/runstore"
	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

type functions []call.Function

func (f functions) Function(name string) (call.Function, bool) {
	for _, d := range f {
		if d.Name == name {
			return d, true
		}
	}
	return call.Function{}, false
}

func (f functions) Functions() []call.Function { return f }

var registered = functions{{Name: "add", Description: "adds"}, {Name: "crm.find"}, {Name: "get_weather", Description: "the weather"}}

// rig is an engine on a real store, with a scripted model.
type rig struct {
	t     *testing.T
	store *runstore.Store
	// slow is what the next replica sees of the store, if it is not the store itself.
	slow  runs.Store
	model *scripted
	hands *hands

	mu     sync.Mutex
	engine *runs.Engine
	stop   func()
}

func newRig(t *testing.T, model *scripted, answer func(call.Call) *call.Result) *rig {
	t.Helper()
	server := testservers.NATS(t)
	nc, err := nats.Connect(server.URL(), nats.MaxReconnects(-1))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	store, err := runstore.Open(t.Context(), nc, js, runstore.Config{})
	require.NoError(t, err)
	r := &rig{t: t, store: store, model: model, hands: &hands{answer: answer}}
	r.hands.engine = r.current
	r.start("a")
	t.Cleanup(func() { r.stop(); r.hands.looking.Wait() })
	return r
}

func (r *rig) current() *runs.Engine {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.engine
}

// start makes the engine of a replica.
func (r *rig) start(name string) {
	store := runs.Store(r.store)
	if r.slow != nil {
		store, r.slow = r.slow, nil
	}
	e := runs.New(runs.Config{Name: name, Poll: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)},
		runs.Parts{Store: store, Model: r.model, Functions: registered, Notices: r.store})
	r.mu.Lock()
	r.engine = e
	r.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { e.Run(ctx, r.hands) })
	r.stop = func() { cancel(); done.Wait() }
}

func (r *rig) begin(body string) string {
	r.t.Helper()
	run, err := r.current().Start(r.t.Context(), json.RawMessage(body), "")
	require.NoError(r.t, err)
	return run.ID
}

// end waits for the end of a run.
func (r *rig) end(id string) runs.Run {
	r.t.Helper()
	var run runs.Run
	require.Eventually(r.t, func() (over bool) {
		got, err := r.current().Get(context.Background(), id)
		run = got
		return err == nil && run.Status.Final()
	}, patience, 5*time.Millisecond, "the run is %+v", &run)
	return run
}

func echo(c call.Call) *call.Result {
	return &call.Result{Success: true, Output: json.RawMessage(`"` + c.Function + ` done"`)}
}

// sums plays two parallel calls, then one, then a text.
func sums(_ int, body request) reply {
	switch body.Metadata["callfan_round"] {
	case "1":
		return completed(`{"id":"rs_1","type":"reasoning","encrypted_content":"e"}`, fcall("c1", "get_weather", `{"city":"北京"}`), fcall("c2", "get_weather", `{"city":"上海"}`))
	case "2":
		return completed(fcall("c3", "add", `{"a":9007199254740993}`))
	default:
		return completed(said("3 degrees"))
	}
}

func TestARunGoesThroughItsRounds(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]string{
		"in the background": ``,
		"streamed":          `,"background":false`,
		"polled":            `,"stream":false`,
		"in one answer":     `,"stream":false,"background":false`,
		"nothing is stored": `,"store":false`,
		"in a conversation": `,"conversation":"conv_1"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, &scripted{play: sums}, echo)
			run := r.end(r.begin(`{"model":"m","input":"which is warmer?","tools":["get_weather","add"]` + mode + `}`))
			require.Equal(t, runs.Completed, run.Status, run.Error)
			require.Equal(t, "3 degrees", run.Text)
			require.Len(t, run.Rounds, 3)
			require.Len(t, run.Rounds[0].Calls, 2)
			requests := r.model.requests()
			require.Len(t, requests, 3)
			outputs := `{"type":"function_call_output","call_id":"c1","output":"get_weather done"},{"type":"function_call_output","call_id":"c2","output":"get_weather done"}`
			switch {
			case strings.Contains(mode, `"store":false`):
				require.Empty(t, requests[1].Previous)
				first := sums(0, request{Metadata: map[string]string{"callfan_round": "1"}})
				require.Equal(t, fmt.Sprintf(`[{"role":"user","content":"which is warmer?"},%s,%s,%s,%s]`, first.output[0], first.output[1], first.output[2], outputs), string(requests[1].Input))
			case strings.Contains(mode, "conversation"):
				require.Empty(t, requests[1].Previous)
				require.Equal(t, "["+outputs+"]", string(requests[1].Input))
			default:
				require.Equal(t, "resp_1", requests[1].Previous)
				require.Equal(t, "["+outputs+"]", string(requests[1].Input))
			}
			for _, n := range r.hands.timesRun() {
				require.Equal(t, 1, n)
			}
			require.Len(t, r.hands.timesRun(), 3)
			require.Eventually(t, func() bool { return r.current().Driven() == 0 }, patience, 5*time.Millisecond)
			s, err := r.current().Session(t.Context(), run.ID)
			require.NoError(t, err)
			require.Empty(t, s.Calls)
		})
	}
}

func TestBoundsEndARun(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		bounds string
		play   func(n int, _ request) reply
		ran    int
	}{
		runs.ReasonRounds: {`{"rounds":3}`, func(n int, _ request) reply { return completed(fcall(fmt.Sprint("c", n), "add", fmt.Sprint(n))) }, 2},
		runs.ReasonCalls: {`{"calls":3}`, func(n int, _ request) reply {
			return completed(fcall(fmt.Sprint("c", n), "add", fmt.Sprint(n)), fcall(fmt.Sprint("d", n), "add", fmt.Sprint(-n)))
		}, 2},
		runs.ReasonRepeats: {`{"repeats":2}`, func(n int, _ request) reply { return completed(fcall(fmt.Sprint("c", n), "add", "{}")) }, 2},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, &scripted{play: tc.play}, echo)
			run := r.end(r.begin(`{"model":"m","input":"x","background":false,"bounds":` + tc.bounds + `}`))
			require.Equal(t, runs.Stopped, run.Status)
			require.Equal(t, reason, run.Reason)
			require.NotEmpty(t, run.Error)
			require.Len(t, r.hands.timesRun(), tc.ran)
		})
	}
	t.Run(runs.ReasonTime, func(t *testing.T) {
		t.Parallel()
		r := newRig(t, &scripted{play: sums}, func(call.Call) *call.Result { return nil })
		run := r.end(r.begin(`{"model":"m","input":"x","bounds":{"time":"300ms"}}`))
		require.Equal(t, runs.Stopped, run.Status)
		require.Equal(t, runs.ReasonTime, run.Reason)
	})
}

func TestResponsesThatDoNotComplete(t *testing.T) {
	t.Parallel()
	refused := &call.Refusal{Class: call.RefusedInvalid, Status: 400, Code: "invalid_value", Err: errors.New("no such model")}
	for name, tc := range map[string]struct {
		play   func(n int, body request) reply
		status runs.Status
		reason string
		asked  int
	}{
		"incomplete": {func(int, request) reply {
			return reply{status: "incomplete", reason: "max_output_tokens", output: completed(said("half")).output}
		}, runs.Incomplete, "max_output_tokens", 1},
		"failed for good": {func(int, request) reply { return reply{status: "failed", reason: "invalid_prompt"} }, runs.Failed, "invalid_prompt", 1},
		"failed thrice":   {func(int, request) reply { return reply{status: "failed", reason: "server_error"} }, runs.Failed, "server_error", 3},
		"failed once": {func(n int, _ request) reply {
			if n == 1 {
				return reply{status: "failed", reason: "server_error"}
			}
			return completed(said("x"))
		}, runs.Completed, "", 2},
		"refused": {func(int, request) reply { return reply{err: refused} }, runs.Failed, "invalid_value", 1},
		"busy": {func(n int, _ request) reply {
			if n < 3 {
				return reply{err: &call.Refusal{Class: call.RefusedBusy, Status: 429, Err: errors.New("slow down")}}
			}
			return completed(said("x"))
		}, runs.Completed, "", 3},
		"foreign": {func(int, request) reply { return completed(`{"type":"computer_call","call_id":"c"}`) }, runs.Failed, "unsupported_item", 1},
		"refusal": {func(int, request) reply {
			return completed(`{"type":"message","content":[{"type":"refusal","refusal":"no"}]}`)
		}, runs.Completed, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, &scripted{play: tc.play}, echo)
			run := r.end(r.begin(`{"model":"m","input":"x"}`))
			require.Equal(t, tc.status, run.Status, run.Error)
			require.Equal(t, tc.reason, run.Reason)
			require.Len(t, r.model.requests(), tc.asked)
			if name == "refusal" {
				require.Equal(t, "no", run.Refusal)
			}
		})
	}
}

func TestAnAsyncCallIsAnsweredInALaterRequest(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	model := &scripted{play: func(_ int, body request) reply {
		switch body.Metadata["callfan_round"] {
		case "1":
			return completed(fcall("slow", "add", "{}", `,"async":true`), fcall("fast", "add", "{}"))
		case "2":
			close(release)
			return completed(said("one moment"))
		default:
			return completed(said("done"))
		}
	}}
	r := newRig(t, model, func(c call.Call) *call.Result {
		if c.Key.Call == "slow" {
			select {
			case <-release:
			default:
				return nil
			}
		}
		return echo(c)
	})
	id := r.begin(`{"model":"m","input":"x"}`)
	<-release
	require.Eventually(t, func() bool { r.hands.look(id); run, _ := r.current().Get(t.Context(), id); return run.Status.Final() }, patience, 10*time.Millisecond)
	run := r.end(id)
	require.Equal(t, "done", run.Text)
	requests := r.model.requests()
	require.Contains(t, string(requests[1].Input), `"fast"`)
	require.NotContains(t, string(requests[1].Input), `"slow"`)
	require.Contains(t, string(requests[2].Input), `"slow"`)
	require.Equal(t, "resp_2", requests[2].Previous)
}

func TestCancelling(t *testing.T) {
	t.Parallel()
	r := newRig(t, &scripted{play: sums}, func(call.Call) *call.Result { return nil })
	id := r.begin(`{"model":"m","input":"x"}`)
	require.Eventually(t, func() bool {
		s, err := r.current().Session(t.Context(), id)
		return err == nil && len(s.Calls) == 2
	}, patience, 5*time.Millisecond)
	_, err := r.current().Cancel(t.Context(), id)
	require.NoError(t, err)
	run := r.end(id)
	require.Equal(t, runs.Cancelled, run.Status)
	_, err = r.current().Cancel(t.Context(), id)
	require.NoError(t, err, "once more is no error")
	s, err := r.current().Session(t.Context(), id)
	require.NoError(t, err)
	require.Empty(t, s.Calls)
	_, err = r.current().Cancel(t.Context(), "run_none")
	require.ErrorIs(t, err, runs.ErrNotFound)
}

func TestStartingTheSameRunAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, &scripted{play: sums}, echo)
	body := json.RawMessage(`{"model":"m","input":"x","tools":["add"]}`)
	first, err := r.current().Start(t.Context(), body, "order-1")
	require.NoError(t, err)
	second, err := r.current().Start(t.Context(), body, "order-1")
	require.NoError(t, err)
	require.Equal(t, first.ID, second.ID)
	_, err = r.current().Start(t.Context(), json.RawMessage(`{"model":"m","input":"y"}`), "order-1")
	require.ErrorIs(t, err, runs.ErrConflict)
	r.end(first.ID)
	require.Len(t, r.model.requests(), 3)
}

// dying records a run, and dies before it makes it active.
type dying struct{ runs.Store }

func (d dying) Create(ctx context.Context, run runs.Run, request json.RawMessage) error {
	return errors.Join(d.Store.Create(ctx, run, request), d.Retire(ctx, run.ID), errors.New("killed"))
}

func TestARunThatWasOnlyRecordedGoesOnWhenItIsStartedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, &scripted{play: sums}, echo)
	r.stop()
	dead := runs.New(runs.Config{Name: "dead"}, runs.Parts{Store: dying{r.store}, Model: r.model, Functions: registered})
	body := json.RawMessage(`{"model":"m","input":"x"}`)
	_, err := dead.Start(t.Context(), body, "order-1")
	require.ErrorContains(t, err, "killed")
	r.start("b")
	run, err := r.current().Start(t.Context(), body, "order-1")
	require.NoError(t, err)
	require.Equal(t, runs.Completed, r.end(run.ID).Status)
	require.Len(t, r.model.requests(), 3)
}

// TestARunSurvivesItsReplicas cuts streams and kills replicas at random instants.
func TestARunSurvivesItsReplicas(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{``, `,"background":false`, `,"store":false`, `,"stream":false`} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			model := &scripted{play: sums}
			kill := make(chan struct{}, 1)
			var cuts atomic.Int32
			model.broken = func(runs.Event) error {
				if sometimes(0.1) && cuts.Load() < 25 {
					select {
					case kill <- struct{}{}:
					default:
					}
				}
				// Not for ever: a run waits longer after each cut.
				if sometimes(0.1) && cuts.Add(1) <= 25 {
					return &call.Refusal{Class: call.RefusedBusy, Err: errors.New("cut")}
				}
				return nil
			}
			r := newRig(t, model, echo)
			var ids []string
			for range 5 {
				ids = append(ids, r.begin(`{"model":"m","input":"x"`+mode+`}`))
			}
			began := time.Now()
			for n := 0; ; n++ {
				over := 0
				for _, id := range ids {
					if run, err := r.current().Get(t.Context(), id); err == nil && run.Status.Final() {
						over++
					}
				}
				if over == len(ids) {
					break
				}
				require.Less(t, time.Since(began), 2*patience)
				select {
				case <-kill:
					r.stop()
					r.start(fmt.Sprint("replica-", n))
				case <-time.After(50 * time.Millisecond):
					for _, id := range ids {
						r.hands.look(id)
					}
				}
			}
			for _, id := range ids {
				run := r.end(id)
				require.Equal(t, runs.Completed, run.Status, run.Error)
				require.Equal(t, "3 degrees", run.Text)
			}
			// Whatever was asked again was asked with the same bytes.
			seen := map[string]string{}
			for _, body := range r.model.requests() {
				at := body.Metadata["callfan_run"] + "/" + body.Metadata["callfan_round"] + "/" + body.Previous
				if mode == `,"store":false` {
					continue // an earlier response was made anew, with other items
				}
				if before, ok := seen[at]; ok {
					require.Equal(t, before, string(body.raw))
				}
				seen[at] = string(body.raw)
			}
			for key, n := range r.hands.timesRun() {
				require.Equal(t, 1, n, key)
			}
		})
	}
}

// lagging holds back what is stored of responses until it is released.
type lagging struct {
	runs.Store

	held    chan struct{}
	release chan struct{}
	once    sync.Once
}

func (l *lagging) PutItem(ctx context.Context, id string, ref runs.Ref, item json.RawMessage) error {
	l.once.Do(func() { close(l.held) })
	<-l.release
	return l.Store.PutItem(context.WithoutCancel(ctx), id, ref, item)
}

// TestAReplicaThatWritesLateSpoilsNothing: while a replica stores the items of a response,
// another one takes the run over and has the response made anew.
func TestAReplicaThatWritesLateSpoilsNothing(t *testing.T) {
	t.Parallel()
	answered := make(chan struct{})
	model := &scripted{forgets: true, play: func(n int, body request) reply {
		if body.Metadata["callfan_round"] == "1" {
			return completed(fcall(fmt.Sprint("c", n), "add", fmt.Sprintf(`{"a":%d}`, n)))
		}
		return completed(said("done"))
	}}
	slow := &lagging{held: make(chan struct{}), release: make(chan struct{})}
	r := newRig(t, model, func(c call.Call) *call.Result {
		select {
		case <-answered:
			return echo(c)
		default:
			return nil
		}
	})
	r.stop()
	slow.Store, r.slow = r.store, slow
	r.start("slow")
	stopSlow := r.stop
	id := r.begin(`{"model":"m","input":"x","store":false}`)
	<-slow.held
	r.start("quick")
	t.Cleanup(stopSlow)
	pending := func() []call.Call {
		s, err := r.current().Session(t.Context(), id)
		if err != nil {
			return nil
		}
		return s.Calls
	}
	require.Eventually(t, func() bool { return len(pending()) == 1 }, patience, 5*time.Millisecond)
	close(slow.release)
	require.Eventually(t, func() bool {
		_, err := r.store.Item(t.Context(), id, runs.Ref{Round: 1, Attempt: 1})
		return err == nil
	}, patience, 5*time.Millisecond, "the slow replica writes")
	close(answered)
	require.Eventually(t, func() bool {
		r.hands.look(id)
		run, err := r.current().Get(t.Context(), id)
		return err == nil && run.Status.Final()
	}, patience, 10*time.Millisecond)
	require.Equal(t, "done", r.end(id).Text)
	requests := r.model.requests()
	last := string(requests[len(requests)-1].Input)
	require.Contains(t, last, `"call_id":"c2"`)
	require.NotContains(t, last, `"c1"`, "an item of the response that was lost")
}
