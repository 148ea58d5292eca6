package redisstore

import (
	"strconv"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// ttls are the two lifetimes of a turn as the scripts take them.
type ttls struct{ active, retention string }

func newTTLs(c Config) ttls {
	return ttls{active: milliseconds(c.ActiveTTL), retention: milliseconds(c.Retention)}
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }

// turnGroup collects the elements of one request that one script run handles:
// those of one turn under one fence.
type turnGroup struct {
	operation *operation
	elements  []int // indices in the request
}

// grouping sorts the elements of a request into turns, in order of appearance.
type grouping struct {
	store  *Store
	script *script
	groups []*turnGroup
	index  map[groupKey]*turnGroup
}

type groupKey struct {
	session, turn string
	fence         uint64
}

func (s *Store) grouping(script *script) *grouping {
	return &grouping{store: s, script: script, index: map[groupKey]*turnGroup{}}
}

// add puts element i of the request into the group of its turn.
func (g *grouping) add(i int, key call.Key, fence uint64, size int, args ...any) {
	id := groupKey{key.Session, key.Turn, fence}
	group := g.index[id]
	if group == nil {
		op := g.store.turnOperation(g.script, key.Session, key.Turn)
		op.keys = append(op.keys, g.store.keys.turns(key.Session))
		op.args = []any{
			strconv.FormatUint(fence, 10), g.store.limits.active, g.store.limits.retention, key.Turn,
		}
		group = &turnGroup{operation: op}
		g.index[id] = group
		g.groups = append(g.groups, group)
	}
	group.elements = append(group.elements, i)
	group.operation.args = append(group.operation.args, args...)
	group.operation.size += size
}

func (g *grouping) operations() []*operation {
	operations := make([]*operation, len(g.groups))
	for i, group := range g.groups {
		operations[i] = group.operation
	}
	return operations
}

// turnOperation is a script on a turn and its results.
func (s *Store) turnOperation(script *script, session, turn string) *operation {
	return &operation{
		script: script,
		keys:   []string{s.keys.turn(session, turn), s.keys.bodies(session, turn)},
	}
}
