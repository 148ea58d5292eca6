package executor

import (
	"context"
	"fmt"

	"github.com/callfan/callfan/pkg/call"
)

// Invoke runs one attempt of a call in this process, with the function's
// middleware, timeout and encoding, and gives what would be reported. A call that
// is marked uncertain goes by d.OnUncertain or else by the function's policy, as
// one that is delivered again does: it may be verified, or not run at all. The
// outcome does not name this process, so that tests can compare it whole. Nothing is
// looked up, reported or redelivered. The kind is empty when nothing would be
// reported, as for a call that is left to another executor. It may be called
// before, during or without Run; package executortest makes it convenient for tests.
func (ex *Executor) Invoke(ctx context.Context, d call.Dispatch) call.Outcome {
	f := ex.function(d.Function)
	if f == nil {
		return outcome(d, call.Outcome{Kind: call.Failure, Cause: "unserved", Error: fmt.Sprintf("no function %q is handled here", d.Function)})
	}
	if d.Uncertain {
		end, over := f.resolve(d, func() (ending, bool) {
			v := ex.verify(ctx, f, d)
			defer v.leave()
			return v.ending()
		})
		if over {
			return outcome(d, end.outcome)
		}
	}
	a := ex.begin(ctx, f, d, d.Uncertain)
	defer a.leave()
	return outcome(d, a.ending().outcome)
}

// outcome addresses o as the answer to d.
func outcome(d call.Dispatch, o call.Outcome) call.Outcome {
	o.Key, o.Nonce = d.Key, d.Nonce
	return o
}
