package queue

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

// worker is an executor process that registers and waits for calls.
type worker struct {
	t    testing.TB
	conn *Conn
	is   Registration
	stop func()
}

func (i *installation) worker(t testing.TB, id, version string, f call.Function) *worker {
	t.Helper()
	return &worker{
		t: t, conn: connect(t, Config{URL: i.server.URL()}), stop: func() {},
		is: Registration{Pool: "crm", ID: id, Language: "go", Version: version, Host: "host-" + id, Functions: []call.Function{f}},
	}
}

func (w *worker) register() error {
	_, err := w.conn.Register(testContext(w.t), w.is)
	return err
}

// run registers and pulls until stop.
func (w *worker) run() {
	w.t.Helper()
	binding, err := w.conn.Register(testContext(w.t), w.is)
	require.NoError(w.t, err)
	puller, err := w.conn.Bind(testContext(w.t), binding)
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			_ = puller.Pull(ctx, 1, func(*Taken) {})
		}
	}()
	w.stop = func() { cancel(); <-done; puller.Close(); w.conn.Close() }
	w.t.Cleanup(w.stop)
	require.Eventually(w.t, func() bool { return w.waiting() > 0 }, patience, 10*time.Millisecond)
}

func (w *worker) waiting() int {
	consumer, err := w.conn.js.Consumer(testContext(w.t), "FN_CALLS", "pool_crm")
	require.NoError(w.t, err)
	return consumer.CachedInfo().NumWaiting
}

func lookupFunction(parameters string, effects call.Effects) call.Function {
	return call.Function{Name: "get_customer", Parameters: json.RawMessage(parameters), Policy: call.Policy{Effects: effects}}
}

const (
	byText   = `{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`
	byNumber = `{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}`
)

func (i *installation) parameters() string {
	f, _ := i.registry.Function("get_customer")
	return string(f.Parameters)
}

func TestOneVersionHasOneDefinition(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.4", ""} {
		t.Run("version "+version, func(t *testing.T) {
			t.Parallel()
			i := install(t, Config{})
			first := i.worker(t, "one", version, lookupFunction(byText, call.EffectsNone))
			first.run()

			second := i.worker(t, "two", version, lookupFunction(byNumber, ""))
			err := second.register()
			requireRefused(t, err, CodeDefinitionConflict)
			require.ErrorContains(t, err, `parameters.properties.id.type is "integer" and was "string"`)
			require.ErrorContains(t, err, `policy.effects is "side_effects" and was "none"`)
			require.ErrorContains(t, err, "executor one (go")
			require.ErrorContains(t, err, "another version")
			require.Equal(t, byText, i.parameters())

			// The same, said in other words, is no conflict; the bytes of the first stay.
			again := i.worker(t, "three", version, lookupFunction(`{ "required": ["id"], "properties": {"id": {"type": "string"}} }`, call.EffectsNone))
			again.is.Functions[0].Policy.Timeout = call.Duration(call.DefaultTimeout)
			require.NoError(t, again.register())
			require.Equal(t, byText, i.parameters())

			// The remedy: stop the others. Nothing has to run out for that.
			first.stop()
			require.NoError(t, second.register())
			require.Equal(t, byNumber, i.parameters())
		})
	}
}

func TestANewVersionMayChangeADefinition(t *testing.T) {
	t.Parallel()
	i := install(t, Config{RegistryCheck: time.Second})
	_, other := i.replica(t)
	one := i.worker(t, "one", "1.0", lookupFunction(byText, ""))
	one.run()
	two := i.worker(t, "two", "2.0", lookupFunction(byNumber, ""))
	two.run()
	require.Equal(t, byNumber, i.parameters())

	// An executor of the old version goes on, and does not take the definition back.
	for range 3 {
		require.NoError(t, one.register())
		require.NoError(t, two.register())
		require.Equal(t, byNumber, i.parameters())
	}
	for _, r := range []*Registry{i.registry, other} {
		require.Eventually(t, func() bool {
			list := r.Functions()
			return len(list) == 1 && len(list[0].Executors) == 2 && !list[0].Executors[0].Current && list[0].Executors[1].Current
		}, patience, 10*time.Millisecond)
		who := r.Functions()[0].Executors[1]
		require.WithinDuration(t, time.Now(), who.Seen, patience)
		who.Seen = time.Time{}
		require.Equal(t, Executor{ID: "two", Language: "go", Version: "2.0", Host: "host-two", Current: true}, who)
	}

	// Rolled back: once nobody of the new version is there the old definition counts.
	two.stop()
	require.Eventually(t, func() bool {
		require.NoError(t, one.register())
		return i.parameters() == byText
	}, patience, 200*time.Millisecond)
	require.Len(t, other.Functions()[0].Executors, 1)

	// And the next one.
	three := i.worker(t, "three", "3.0", lookupFunction(byNumber, call.EffectsNone))
	require.NoError(t, three.register())
	require.Equal(t, byNumber, i.parameters())
}

func TestTheBytesOfParametersStay(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	const written = "{ \"type\" : \"object\",\n\t\"description\": \"a <b> & \\u00e9é \u2028\", \"properties\": {\"n\": {\"maximum\": 1.0e2}} }"
	require.NoError(t, i.worker(t, "one", "", lookupFunction(written, "")).register())
	_, later := i.replica(t) // reads it from the bucket
	f, ok := later.Function("get_customer")
	require.True(t, ok)
	require.Equal(t, written, string(f.Parameters))
}

func TestPresenceForgets(t *testing.T) {
	t.Parallel()
	p := newPresence(time.Minute)
	definition := json.RawMessage(`{"name":"f","policy":{}}`)
	for n := range maxHeard + 10 {
		p.note("f", registerRequest{Function: definition, Executor: executorInfo{ID: string(rune('a' + n))}})
	}
	p.hear("f", []byte(`{`))
	p.hear("f", []byte(`{"protocol":1,"function":{"name":"another"}}`))
	f := call.Function{Name: "f"}
	require.Len(t, p.executors("f", f.Fingerprint()), maxHeard)
	p.keep = 0
	require.Empty(t, p.executors("f", f.Fingerprint()))
	p.prune()
	require.Empty(t, p.heard)
}

// asked is the answer to one registration, without asking again.
func (w *worker) asked() error {
	w.t.Helper()
	body, err := w.is.request(w.is.Functions[0], []string{w.is.Functions[0].Name})
	require.NoError(w.t, err)
	reply, err := w.conn.request(testContext(w.t), "fn.register.get_customer", body)
	require.NoError(w.t, err)
	_, err = parseBinding("get_customer", reply)
	return err
}

func TestAnExecutorThatStartsIsNotOverruled(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	require.NoError(t, i.worker(t, "one", "1.0", lookupFunction(byText, "")).register())
	second := i.worker(t, "two", "1.0", lookupFunction(byNumber, ""))
	requireRefused(t, second.asked(), CodeUnavailable) // the first has not pulled yet
	began := time.Now()
	require.NoError(t, second.register()) // and never does
	require.Greater(t, time.Since(began), starting/2)
}

func TestADispatcherThatHasJustStartedKeepsTheDefinition(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	first := i.worker(t, "one", "1.0", lookupFunction(byText, ""))
	first.run()
	require.NoError(t, i.dispatcher.nc.Drain())
	_, i.registry = i.replica(t) // it heard nobody
	requireRefused(t, i.worker(t, "two", "1.0", lookupFunction(byNumber, "")).register(), CodeDefinitionConflict)
	require.NoError(t, i.worker(t, "three", "2.0", lookupFunction(byNumber, "")).register())
	require.Equal(t, byNumber, i.parameters())
}

func TestABusyExecutorIsThere(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	first := i.worker(t, "one", "1.0", lookupFunction(byText, ""))
	require.NoError(t, first.register())
	stop, err := first.conn.OnCancel([]string{"get_customer"}, func(key call.Key, _ string) { t.Errorf("cancelled: %v", key) })
	require.NoError(t, err)
	require.NoError(t, first.conn.nc.Flush())
	second := i.worker(t, "two", "1.0", lookupFunction(byNumber, ""))
	requireRefused(t, second.register(), CodeDefinitionConflict)
	stop()
	require.NoError(t, first.conn.nc.Flush())
	require.Eventually(t, func() bool { return second.register() == nil }, patience, 200*time.Millisecond)
}

func TestAnExecutorIsNoRivalOfItself(t *testing.T) {
	t.Parallel()
	p := newPresence(time.Minute)
	one := executorInfo{ID: "one"}
	p.note("f", registerRequest{Function: json.RawMessage(`{"name":"f","policy":{}}`), Executor: one})
	fingerprint := call.Function{Name: "f"}.Fingerprint()
	others, complete := p.others("f", fingerprint, one)
	require.Empty(t, others)
	require.False(t, complete)
	p.since = p.since.Add(-time.Hour)
	others, complete = p.others("f", fingerprint, executorInfo{ID: "two"})
	require.Len(t, others, 1)
	require.True(t, complete)
}
