package conformance

import (
	"strings"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

func failureChecks() []check {
	return []check{
		core("failures/business", func(t *trial) {
			const text = "customer 123 not found: <ask> \"again\" ☂"
			o := t.fails(t.call("fail", `{"text":"customer 123 not found: <ask> \"again\" ☂"}`), "")
			if o.Error != text {
				t.failf("the failure has the text %q; want %q", o.Error, text)
			}
		}),
		full("failures/crash", failureCrash),
		core("failures/retry", failureRetry),
		core("failures/retry-delay", failureRetryDelay),
		core("failures/success-after-retries", failureThenSuccess),
		core("failures/timeout", failureTimeout),
		core("failures/deadline", failureDeadline),
		core("failures/deadline-passed", failureDeadlinePassed),
	}
}

func failureCrash(t *trial) {
	o := t.fails(t.call("crash", `{}`), call.ReasonPanic)
	if !strings.Contains(o.Error, "function crashed") {
		t.failf("the text for the model is %q; want one with: function crashed", o.Error)
	}
	if strings.Contains(o.Error, "secret-detail") {
		t.failf("the text for the model has the details of the crash: %s", shorten(o.Error))
	}
}

func failureRetry(t *trial) {
	o := t.kind(t.call("retry", `{"after_ms":2000,"ok_at":3}`), call.Retry)
	if !strings.Contains(o.Reason, "not yet") {
		t.failf("the reason is %q; want one with: not yet", o.Reason)
	}
}

func failureRetryDelay(t *trial) {
	if o := t.kind(t.call("retry", `{"after_ms":2000,"ok_at":3}`), call.Retry); o.After != 2*time.Second {
		t.failf("after_ms is %d; want 2000", o.After.Milliseconds())
	}
}

func failureThenSuccess(t *trial) {
	const arguments = `{"after_ms":10,"ok_at":3}`
	first := t.call("retry", arguments)
	t.kind(first, call.Retry)
	second := t.call("retry", arguments, t.again(first))
	t.eventually(patience, func() bool { return len(t.reported(first)) == 2 }, "no outcome of attempt 2 arrived")
	third := t.call("retry", arguments, t.again(second))
	t.eventually(patience, func() bool { return len(t.reported(first)) == 3 }, "no outcome of attempt 3 arrived")
	all := t.reported(first)
	if all[1].Outcome.Kind != call.Retry || all[1].Outcome.Nonce != second.Nonce {
		t.failf("attempt 2 came to %s, nonce %q; want retry with the nonce of its call", describe(all[1].Outcome), all[1].Outcome.Nonce)
	}
	if all[2].Outcome.Nonce != third.Nonce {
		t.failf("attempt 3 echoes the nonce %q; want %q", all[2].Outcome.Nonce, third.Nonce)
	}
	t.is(all[2].Outcome, "ok")
	attempts := map[int]bool{}
	for _, e := range t.events(first.Key.Call) {
		attempts[e.Attempt] = true
	}
	if !attempts[1] || !attempts[2] || !attempts[3] {
		t.failf("the handlers were told the attempts %v; want 1, 2 and 3", attempts)
	}
}

// The call's timeout overrules the function's own.
func failureTimeout(t *trial) {
	p := t.call("sleep", `{"ms":15000}`, timeout(time.Second))
	t.fails(p, call.ReasonTimeout)
	if took := time.Since(p.published); took < 900*time.Millisecond {
		t.failf("the failure came after %s; the timeout is 1 s", took)
	}
	t.stopped(p, 3*time.Second)
}

func failureDeadline(t *trial) {
	t.fails(t.call("sleep", `{"ms":15000}`, deadline(1500*time.Millisecond)), call.ReasonDeadline)
}

func failureDeadlinePassed(t *trial) {
	p := t.call("sleep", `{"ms":1}`, deadline(-time.Second))
	t.fails(p, call.ReasonDeadline)
	t.runs(p, 0)
}
