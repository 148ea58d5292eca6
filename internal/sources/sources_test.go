package sources_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/callfan/callfan/internal/agents"
	"github.com/callfan/callfan/internal/sources"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	_ sources.Subscriber = (*agents.Client)(nil)
	_ sources.Lister     = (*agents.Client)(nil)
)

// recorder remembers what a source did, in order: "attach a b", "nudge a why".
type recorder struct {
	mu   sync.Mutex
	did  []string
	fail error // of Attach and Detach
}

func (r *recorder) note(words ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.did = append(r.did, strings.Join(words, " "))
}

// take returns what was done since the last take.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	did := r.did
	r.did = nil
	return did
}

func (r *recorder) failing(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = err
}

func (r *recorder) Attach(_ context.Context, ids ...string) error {
	r.note(append([]string{"attach"}, ids...)...)
	return r.err()
}

func (r *recorder) Detach(_ context.Context, ids ...string) error {
	r.note(append([]string{"detach"}, ids...)...)
	return r.err()
}

func (r *recorder) Nudge(id, trigger string) { r.note("nudge", id, trigger) }

func (r *recorder) err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fail
}

// logLines is a logger whose lines can be read.
type logLines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logLines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logLines) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSuffix(l.text.String(), "\n"), "\n")
}
