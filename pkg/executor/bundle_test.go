package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

// bundle is an executor on a fake queue, inside a synctest bubble.
type bundle struct {
	t    *testing.T
	q    *fakeQueue
	ex   *Executor
	seen *recorder
	logs *syncBuffer

	stop func()
	err  chan error
}

func newBundle(t *testing.T, cfg Config) *bundle {
	t.Helper()
	b := &bundle{t: t, q: newFakeQueue(30 * time.Second), seen: newRecorder(), logs: new(syncBuffer), err: make(chan error, 1)}
	cfg.Pool, cfg.Observer = "tools", b.seen
	cfg.Logger = slog.New(slog.NewTextHandler(b.logs, nil))
	ex, err := New(cfg)
	require.NoError(t, err)
	b.ex = ex
	return b
}

// on handles a function by f, without arguments and output.
func (b *bundle) on(name string, f func(ctx context.Context) error, opts ...Option) {
	b.t.Helper()
	require.NoError(b.t, HandleRaw(b.ex, name, func(ctx context.Context, _ Call) (Output, error) {
		return Text("done"), f(ctx)
	}, opts...))
}

// start runs the executor in the background.
func (b *bundle) start() {
	ctx, cancel := context.WithCancel(context.Background())
	b.stop = cancel
	go func() { b.err <- b.ex.serve(ctx, fakeLink{b.q}) }()
	synctest.Wait()
}

// end stops the executor and gives the error of Run.
func (b *bundle) end() error {
	b.stop()
	return <-b.err
}

// outcome is the only outcome reported so far.
func (b *bundle) outcome() call.Outcome {
	b.t.Helper()
	got := b.q.reported()
	require.Len(b.t, got, 1)
	return got[0]
}

// recorder is an Observer that remembers.
type recorder struct {
	mu        sync.Mutex
	started   int
	abandoned int
	finished  []Finish
}

func newRecorder() *recorder { return new(recorder) }

func (r *recorder) Started(string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started++
}

func (r *recorder) Finished(f Finish) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finished = append(r.finished, f)
}

func (r *recorder) Abandoned(string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.abandoned++
}

func (r *recorder) reasons() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var reasons []string
	for _, f := range r.finished {
		reasons = append(reasons, f.Reason)
	}
	return reasons
}

type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func textOf(t *testing.T, o call.Outcome) string {
	t.Helper()
	require.Equal(t, call.Success, o.Kind, o.Error)
	var text string
	require.NoError(t, json.Unmarshal(o.Output, &text), string(o.Output))
	return text
}

// pass lets d pass in the bubble and what happens in it come to rest.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
