package sources

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// troubles says each kind of trouble once, however many sessions have it: again
// only after a stream could be opened in between, and not within a minute.
type troubles struct {
	log *slog.Logger

	mu     sync.Mutex
	said   map[call.RefusalClass]time.Time
	silent map[call.RefusalClass]bool
}

func (t *troubles) report(ctx context.Context, class call.RefusalClass, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ever := t.said[class]
	if t.silent[class] || (ever && time.Since(at) < time.Minute) {
		return
	}
	if t.said == nil {
		t.said, t.silent = map[call.RefusalClass]time.Time{}, map[call.RefusalClass]bool{}
	}
	t.said[class], t.silent[class] = time.Now(), true
	level := slog.LevelWarn
	if class == call.RefusedAuth {
		level = slog.LevelError
	}
	t.log.Log(ctx, level, "session streams are failing; sessions are looked at less often meanwhile", "class", class, "error", err)
}

// over says that a stream could be opened.
func (t *troubles) over() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.silent)
}
