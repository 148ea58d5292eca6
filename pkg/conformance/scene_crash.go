package conformance

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/callfan/callfan/pkg/call"
)

// crashScene has a function that ends its executor.
func crashScene() scene {
	var p *placed
	unless := func(t *trial) string { return filepath.Join(t.dir, "alive") }
	return scene{
		name:    "crash",
		config:  rigConfig{ackWait: shortLease, concurrency: 4},
		ordered: true,
		act: func(t *trial) {
			t.serve()
			t.stop(t.start())
			p = t.draft("exit", fmt.Sprintf(`{"unless":%q}`, unless(t)))
			t.publish(p)
			t.deliverToNobody(map[uint64]int{p.Sequence: 2})
			first := t.launch()
			t.eventually(startWithin, first.gone, "the function exit did not end the executor")
			t.start()
		},
		checks: []check{
			full("crashes/limit", func(t *trial) {
				t.fails(p, call.ReasonCrashed, 2*patience)
				t.runs(p, 1)
			}),
			full("crashes/others-are-served", func(t *trial) {
				t.must(os.WriteFile(unless(t), nil, 0o600), "let the function return")
				t.succeeds(t.call("exit", fmt.Sprintf(`{"unless":%q}`, unless(t))), "alive")
			}),
		},
	}
}
