package dispatcher

import (
	"context"
	"errors"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// errReported says that a call was not handed over, since an outcome of it was found.
var errReported = errors.New("an outcome of the call is in the queue")

// publishUnreported publishes the calls, but for unproven ones that left traces in the
// queue: they are not new, the store lost their records.
func (d *Dispatcher) publishUnreported(ctx context.Context, dispatches []call.Dispatch, unproven []bool) []error {
	errs := make([]error, len(dispatches))
	var left []call.Dispatch
	var index []int
	for i := range dispatches {
		if unproven[i] {
			traced, err := d.traced(ctx, &dispatches[i])
			if errs[i] = err; traced || err != nil {
				continue
			}
		}
		left, index = append(left, dispatches[i]), append(index, i)
	}
	for n, err := range d.queue.Publish(ctx, left) {
		errs[index[n]], dispatches[index[n]].Sequence = err, left[n].Sequence
	}
	return errs
}

// traced says whether the call was handed over before. An outcome of it is errReported.
// The hand-over itself is looked for only where it can lie in the queue for longer than
// the queue would recognise a second one.
func (d *Dispatcher) traced(ctx context.Context, dispatch *call.Dispatch) (bool, error) {
	reported, err := d.queue.Reported(ctx, *dispatch)
	if err != nil {
		return false, err
	}
	if reported {
		return true, errReported
	}
	if time.Until(dispatch.Deadline) < d.cfg.dedupeSafe() {
		return false, nil
	}
	dispatch.Sequence, err = d.queue.Stored(ctx, *dispatch)
	return dispatch.Sequence != 0, err
}
