package functionfile

import (
	"context"
	"net/http"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
)

// exitNotDone is the exit status by which a verifying program says that the call did
// not take effect. Such a status must not come about by accident: common programs
// exit with small numbers, shells with 126 and more, and perl with an errno.
const exitNotDone = 244

// verify reads what finds out whether an earlier run took effect.
func (l loader) verify(at entry, where string) (executor.Option, error) {
	entries, err := l.mapping(at.value, where)
	if err != nil {
		return nil, err
	}
	var run runner
	for _, e := range entries {
		if e.name != "exec" && e.name != "http" {
			return nil, l.unknownKey(e, where, []string{"exec", "http"})
		}
		if err := l.runner(&run, e, where); err != nil {
			return nil, err
		}
	}
	switch {
	case run.exec != nil:
		return executor.WithVerify(run.exec.verify), nil
	case run.http != nil:
		return executor.WithVerify(run.http.verify), nil
	default:
		return nil, l.fault(at.key, "%s has neither exec nor http; add the one that finds out", where)
	}
}

// verify runs the program as run does, with FN_VERIFY=1. An exit status of 0 means
// done with what it wrote as the output, exitNotDone means not done.
func (p *program) verify(ctx context.Context, c executor.Call) (executor.Verdict, error) {
	end := p.execute(ctx, append(callEnvironment(c), "FN_VERIFY=1"), c.Arguments)
	switch {
	case ctx.Err() != nil:
		return executor.Verdict{}, context.Cause(ctx)
	case end.tooLarge:
		return executor.Verdict{}, tooLarge()
	case end.notStarted != nil:
		return executor.Verdict{}, end.notStarted
	case end.failed != nil:
		return executor.Verdict{}, end.failed
	case end.state.ExitCode() == 0:
		return doneWith(p.format.output(end.stdout))
	case end.state.ExitCode() == exitNotDone:
		return executor.NotDone(), nil
	case end.state.ExitCode() < 0: // ended by a signal
		return executor.CannotTell("the verifying program crashed (" + end.state.String() + ")"), nil
	default:
		return executor.CannotTell(orElse(end.stderr, "the verifying program "+exitText(end.state))), nil
	}
}

// The header by which an endpoint says that a 404 is its own, and its value.
const (
	verdictHeader  = "X-Fn-Verdict"
	verdictNotDone = "not-done"
)

// verify posts as run does, with X-Fn-Verify: 1. A status of 200 means done with the
// body as the output, 404 with X-Fn-Verdict: not-done means not done: a 404 alone may
// come from whatever stands before the endpoint, and would be a doubled effect.
func (h *endpoint) verify(ctx context.Context, c executor.Call) (executor.Verdict, error) {
	header := h.header(c)
	header.Set("X-Fn-Verify", "1")
	resp, err := h.post(ctx, header, c.Arguments)
	if err != nil {
		return executor.Verdict{}, unreachable(ctx, err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return doneWith(h.output(ctx, resp))
	case http.StatusNotFound:
		if resp.Header.Get(verdictHeader) == verdictNotDone {
			return executor.NotDone(), nil
		}
		return executor.CannotTell("the verifying endpoint answered 404 without " + verdictHeader + ": " + verdictNotDone), nil
	default:
		if resp.Header.Get(causeHeader) == call.ReasonPanic {
			return executor.CannotTell("the verifying endpoint crashed"), nil
		}
		return executor.CannotTell(answerText(resp)), nil
	}
}

func doneWith(output executor.Output, err error) (executor.Verdict, error) {
	if err != nil {
		return executor.Verdict{}, err
	}
	return executor.Done(output), nil
}
