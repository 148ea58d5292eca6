//go:build unix

package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/simulator"
	"github.com/callfan/callfan/test/chaos/effects"
)

// world is a small run that went well, to be spoilt by a test.
type world struct {
	t   *testing.T
	dir string
	api *api
	w   *workload
	out *outcomes
	end time.Time
	bug string
}

func newWorld(t *testing.T) *world {
	t.Parallel()
	sim, err := simulator.New(simulator.Config{})
	require.NoError(t, err)
	t.Cleanup(sim.Close)
	a := &api{sim: sim, results: map[string]*submitted{}, asked: map[window]askers{}}
	w := &world{
		t: t, dir: t.TempDir(), api: a, w: newWorkload(a, Config{Seed: 1}.random(1)),
		out: &outcomes{succeeded: map[string]bool{}}, end: time.Now(),
	}
	for n, f := range effects.Functions() {
		c := w.plan(f, n)
		w.did(c, effects.Start, "run")
		if f.Class != effects.None {
			w.did(c, effects.Done, "run")
		}
		w.did(c, effects.End, "run")
		w.answer(c, true, "done "+c.number)
	}
	return w
}

func (w *world) plan(f effects.Function, n int) *plannedCall {
	c := &plannedCall{
		number: fmt.Sprintf("t1-c%d", n), function: f, key: fmt.Sprintf("s/t/c%d", n), seen: 1,
		listed: w.end.Add(-time.Minute), answered: w.end.Add(-50 * time.Second),
	}
	w.w.planned[c.number] = c
	return c
}

func (w *world) did(c *plannedCall, event effects.Event, run string) {
	require.NoError(w.t, effects.Append(effects.File(w.dir, c.function.Name),
		effects.Line{Event: event, Number: c.number, Key: c.key, IdempotencyKey: "key of " + c.key, Attempt: 1, Run: run}))
}

func (w *world) answer(c *plannedCall, success bool, text string) {
	c.success = success
	quoted, err := json.Marshal(text)
	require.NoError(w.t, err)
	c.text = string(quoted)
	w.submit(c, success, c.text)
}

func (w *world) published(c *plannedCall, kind string) {
	m := nats.NewMsg("fn.result.f.p00")
	m.Header.Set("Nats-Msg-Id", "1-nonce."+kind)
	m.Data = fmt.Appendf(nil, `{"session_id":"s","turn_id":"t","call_id":%q}`, c.key[len("s/t/"):])
	w.out.note(m)
}

func (w *world) submit(c *plannedCall, success bool, text string) {
	body := fmt.Sprintf(`{"events":[{"type":"agent.session.input.tool_result","turn_id":"t","call_id":%q,"success":%t,"output":%s}]}`,
		c.key[len("s/t/"):], success, text)
	w.api.note("s", []byte(body), http.StatusAccepted)
}

func (w *world) of(class effects.Class) *plannedCall {
	for _, c := range w.w.planned {
		if c.function.Class == class {
			return c
		}
	}
	w.t.Fatalf("no call of class %s", class)
	return nil
}

func (w *world) check() *Report {
	r := &Report{Bug: w.bug, FaultsBy: map[string]int{}}
	require.NoError(w.t, check(r, w.w, w.api, w.out, w.dir, w.end))
	r.judge()
	var out bytes.Buffer
	require.NoError(w.t, r.Write(&out))
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	var last Report
	require.NoError(w.t, json.Unmarshal(lines[len(lines)-1], &last), "the last line is the report")
	require.Equal(w.t, r.Pass, last.Pass)
	return r
}

func TestACleanRunPasses(t *testing.T) {
	w := newWorld(t)
	r := w.check()
	require.True(t, r.Pass)
	require.Equal(t, r.Calls, r.Answered)
	require.InDelta(t, 10, r.MaxStall, 0.1)
}

func TestTheCheckerSees(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(w *world)
		found func(r *Report) int
	}{
		"a call without an answer": {
			func(w *world) { w.of(effects.None).answered = time.Time{} },
			func(r *Report) int { return r.Lost },
		},
		"a result that never arrived": {
			func(w *world) { w.answer(w.of(effects.None), false, "no outcome of read arrived in time") },
			func(r *Report) int { return r.Lost },
		},
		"two results of one call": {
			func(w *world) { w.submit(w.of(effects.Keyed), false, `"another"`) },
			func(r *Report) int { return r.Doubled },
		},
		"a payment made twice": {
			func(w *world) { w.did(w.of(effects.Fail), effects.Done, "again") },
			func(r *Report) int { return r.EffectsDoubledBy[effects.Fail] },
		},
		"an action twice for one key": {
			func(w *world) { w.did(w.of(effects.Keyed), effects.Done, "again") },
			func(r *Report) int { return r.EffectsDoubledBy[effects.Keyed] },
		},
		"a verified call that ran twice": {
			func(w *world) { w.did(w.of(effects.Verified), effects.Done, "again") },
			func(r *Report) int { return r.EffectsDoubledBy[effects.Verified] },
		},
		"the result of another call": {
			func(w *world) { w.of(effects.None).text = `"done t1-c99"` },
			func(r *Report) int { return r.Wrong },
		},
		"a success without its effect": {
			func(w *world) {
				f := effects.Function{Name: "charge", Class: effects.Fail}
				w.answer(w.plan(f, 99), true, "done t1-c99")
			},
			func(r *Report) int { return r.Wrong },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.spoil(w)
			r := w.check()
			require.Equal(t, 1, c.found(r))
			require.False(t, r.Pass)
		})
	}
}

func TestAnOvertakenSuccessIsCounted(t *testing.T) {
	w := newWorld(t)
	c := w.plan(effects.Functions()[0], 99)
	w.published(c, "success")
	w.published(c, "failure")
	w.answer(c, false, "the outcome of this call is unknown")
	require.Equal(t, 1, w.check().Overtaken)
}

func TestARunAfterAPublishedSuccessIsCounted(t *testing.T) {
	w := newWorld(t)
	c := w.of(effects.None)
	w.published(c, "success")
	w.out.since[c.key] = time.Now().Add(-2 * onItsWay)
	require.Zero(t, w.check().RunAgain, "who stood still may begin what it has had for long")
	require.NoError(t, effects.Append(effects.File(w.dir, c.function.Name),
		effects.Line{Event: effects.Start, Number: c.number, Key: c.key, IdempotencyKey: "key of " + c.key, Uncertain: true, Run: "again"}))
	r := w.check()
	require.Equal(t, 1, r.RunAgain)
	require.False(t, r.Pass, "of so few calls")
}

func TestManyRepeatedResultsFail(t *testing.T) {
	w := newWorld(t)
	for _, c := range w.w.planned {
		w.submit(c, c.success, c.text)
	}
	r := w.check()
	require.Zero(t, r.Doubled, "they are the same")
	require.False(t, r.Pass)
}

func TestSessionsWithSeveralOwnersFail(t *testing.T) {
	w := newWorld(t)
	w.asks("dispatcher-1", "dispatcher-2", "dispatcher-3", "dispatcher-1")
	require.False(t, w.check().Pass)
}

func TestAChangeOfOwnerPasses(t *testing.T) {
	w := newWorld(t)
	w.asks("dispatcher-1", "dispatcher-1", "dispatcher-2", "dispatcher-2")
	r := w.check()
	require.True(t, r.Pass)
	require.Zero(t, r.Shared)
}

// asks has replicas ask about a session, all within one window.
func (w *world) asks(replicas ...string) {
	for {
		w.api.asked = map[window]askers{}
		for _, replica := range replicas {
			r, err := http.NewRequest(http.MethodGet, "http://api/v1/agents/sessions/s", http.NoBody)
			require.NoError(w.t, err)
			r.Header.Set(replicaHeader, replica)
			w.api.asks(r)
		}
		if len(w.api.asked) == 1 { // or the clock passed from one window to the next
			return
		}
	}
}

func TestAPlantedFaultIsCaughtByWhatItDoes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bug   string
		spoil func(w *world)
		want  bool
	}{
		"no claim, an effect twice": {"no-claim", func(w *world) { w.did(w.of(effects.Fail), effects.Done, "again") }, true},
		"no claim, a slow call":     {"no-claim", func(w *world) { w.of(effects.None).answered = time.Time{} }, false},
		"no fence, a slow call":     {"no-fence", func(w *world) { w.of(effects.None).answered = time.Time{} }, false},
		"no fence, many owners":     {"no-fence", func(w *world) { w.asks("a", "b", "c") }, true},
		"early ack, a lost result": {"ack-before-save", func(w *world) {
			w.answer(w.of(effects.None), false, "no outcome of read arrived in time")
		}, true},
		"early ack, a forgotten result": {"ack-before-save", func(w *world) {
			c := w.of(effects.None)
			w.published(c, "success")
			c.answered, w.out.left = time.Time{}, map[string]bool{}
		}, true},
		"early ack, a result that waits": {"ack-before-save", func(w *world) {
			c := w.of(effects.None)
			w.published(c, "success")
			c.answered, w.out.left = time.Time{}, map[string]bool{c.key: true}
		}, false},
		"early ack, nothing": {"ack-before-save", func(*world) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.bug = c.bug
			c.spoil(w)
			require.Equal(t, c.want, w.check().Caught)
		})
	}
}
