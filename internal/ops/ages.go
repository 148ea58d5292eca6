package ops

import (
	"sync"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// generation is how many calls are remembered in one generation. When it is full
// the one before is forgotten, so that calls whose end this replica never sees,
// because another took them over, do not pile up.
const generation = 1 << 16

// ages remembers at what age each call entered its present state.
type ages struct {
	mu         sync.Mutex
	young, old map[call.Key]time.Duration
}

func newAges() *ages { return &ages{young: map[call.Key]time.Duration{}} }

// step notes that the call entered a state, a final one when last, and says at
// what age it had entered the one before; not ok when that is not known.
func (a *ages) step(key call.Key, age time.Duration, last bool) (entered time.Duration, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if entered, ok = a.young[key]; !ok {
		entered, ok = a.old[key]
	}
	delete(a.old, key)
	if last {
		delete(a.young, key)
		return entered, ok
	}
	if len(a.young) >= generation {
		a.young, a.old = make(map[call.Key]time.Duration), a.young
	}
	a.young[key] = age
	return entered, ok
}
