package conformance

import (
	"slices"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

const slots = 4

// slotScene has few slots: how many calls run at once, and what a stuck handler takes.
func slotScene() scene {
	return scene{
		name:    "slots",
		config:  rigConfig{concurrency: slots},
		ordered: true,
		checks: []check{
			core("concurrency/bound", concurrencyBound),
			core("concurrency/pulls", concurrencyPulls),
			full("failures/stuck-handler", stuckHandler),
		},
	}
}

func concurrencyBound(t *trial) {
	var calls []*placed
	for range 3 * slots {
		calls = append(calls, t.call("sleep", `{"ms":700}`))
	}
	for _, p := range calls {
		t.succeeds(p, "slept", 2*patience)
	}
	switch most := t.mostAtOnce(); {
	case most > slots:
		t.failf("%d calls ran at once; EXECUTOR_CONCURRENCY is %d", most, slots)
	case most < slots:
		t.failf("at most %d calls ran at once while more were waiting; EXECUTOR_CONCURRENCY is %d", most, slots)
	}
}

// mostAtOnce counts the calls of sleep between their start and their end.
func (t *trial) mostAtOnce() int {
	events := slices.DeleteFunc(t.events(""), func(e event) bool { return e.Function != "sleep" })
	// What ended in the millisecond in which another started was not beside it.
	slices.SortStableFunc(events, func(a, b event) int {
		if a.AtMS != b.AtMS {
			return int(a.AtMS - b.AtMS)
		}
		return map[bool]int{true: -1, false: 1}[a.Event == "end" && b.Event == "start"]
	})
	now, most := 0, 0
	for _, e := range events {
		switch e.Event {
		case "start":
			now++
		case "end":
			now--
		}
		most = max(most, now)
	}
	return most
}

func concurrencyPulls(t *trial) {
	if largest := t.largestPull(); largest > slots {
		t.failf("the executor pulled %d calls at once; only %d can run", largest, slots)
	}
}

func stuckHandler(t *trial) {
	var stuck []*placed
	for range slots {
		stuck = append(stuck, t.call("stuck", `{}`, timeout(time.Second)))
	}
	for _, p := range stuck {
		t.fails(p, call.ReasonTimeout, 10*time.Second)
	}
	p := t.call("echo", `{"a":1}`)
	t.succeeds(p, `{"a":1}`, 5*time.Second)
}
