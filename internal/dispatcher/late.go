package dispatcher

import (
	"bytes"
	"context"
	"fmt"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// late lets go of a result that came after its call had another one or had ended. When
// it says something else, it is kept for operators: it is the only trace of what a run
// did. It is never sent.
func (s *session) late(dv call.Delivered, rec results.Record) {
	s.d.obs.Count(EventLateOutcome)
	if kind := dv.Outcome.Kind; kind != call.Success && kind != call.Failure || dv.ID == rec.OutcomeID ||
		rec.Result != nil && sameResult(*rec.Result, dv.Outcome.Result()) {
		dv.Ack()
		return
	}
	s.d.obs.Count(EventLateResult)
	state := rec.State
	if state == call.Absent {
		state = "no longer required"
	}
	letter := call.DeadLetter{
		Token: dv.Token, Reason: EventLateResult, Subject: dv.Subject, Body: dv.Body,
		Detail: fmt.Sprintf("a %s of call %s arrived when the call was %s already", dv.Outcome.Kind, dv.Outcome.Key, state),
	}
	if rec.Result != nil {
		letter.Detail += fmt.Sprintf(" (%s, by %s)", outcomeWord(*rec.Result), rec.Result.Reason)
	}
	s.async(func() func() {
		ctx, cancel := context.WithTimeout(s.p.work, requestTimeout)
		defer cancel()
		if err := s.d.queue.Bury(ctx, letter); err != nil {
			s.log.Warn("a late result was not kept; it comes again", "call_id", dv.Outcome.Key.Call, "error", err)
			return nil
		}
		dv.Ack()
		return nil
	})
}

func sameResult(a, b call.Result) bool {
	return a.Success == b.Success && bytes.Equal(a.Output, b.Output) && a.Error == b.Error
}

func outcomeWord(r call.Result) string {
	if r.Success {
		return string(call.Success)
	}
	return string(call.Failure)
}
