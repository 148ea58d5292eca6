package dispatcher

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// errReported says that a call was not handed over, since an outcome of it was found.
var errReported = errors.New("an outcome of the call is in the queue")

// youth is how long after a partition's start the calls at the first look at a session
// are compared with the queue. What a lost store forgot shows until then; later first
// looks are at new sessions.
const youth = 10 * time.Minute

// unproven says that a call claimed now may be one that a store without its data forgot.
func (s *session) unproven(now time.Time) bool {
	return !s.get.done && now.Sub(s.p.began) < youth
}

// publishUnreported publishes the calls, but for unproven ones that left traces in the
// queue: they are not new, the store lost their records.
func (d *Dispatcher) publishUnreported(ctx context.Context, dispatches []call.Dispatch, unproven []bool) []error {
	errs, traced := make([]error, len(dispatches)), make([]bool, len(dispatches))
	var looks sync.WaitGroup
	for i := range dispatches {
		if unproven[i] {
			looks.Go(func() { traced[i], errs[i] = d.traced(ctx, &dispatches[i]) })
		}
	}
	looks.Wait()
	var left []call.Dispatch
	var index []int
	for i := range dispatches {
		if !traced[i] && errs[i] == nil {
			left, index = append(left, dispatches[i]), append(index, i)
		}
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
	token := call.Token(dispatch.Function)
	reported, err := d.queue.Reported(ctx, *dispatch, func(o call.Outcome) bool {
		_, genuine := d.attemptOf(call.Delivered{Outcome: o, Token: token})
		return genuine && o.Kind != call.Released // a call that was given back may be handed over
	})
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
