package ops

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/callfan/callfan/pkg/call"
)

// Explain says in one sentence why a call is in its state. With the call's history it
// tells what was noted last, too.
func (c Call) Explain() string {
	since := (time.Duration(c.SinceMS) * time.Millisecond).Round(time.Second)
	switch c.State {
	case call.Absent:
		return "The dispatchers have no record of it: it was never claimed, or its markers were forgotten after the retention."
	case call.Seen:
		return fmt.Sprintf("It was claimed and handed over %s ago as attempt %d; no outcome has arrived.", since, max(c.Attempt, 1))
	case call.Held:
		return fmt.Sprintf("No executor has registered %s; the call has waited for one for %s.", c.Function, since)
	case call.Queued:
		return fmt.Sprintf("It has been in the queue or with an executor for %s as attempt %d; no outcome has arrived.", since, max(c.Attempt, 1))
	case call.Retrying:
		return fmt.Sprintf("Attempt %d failed for a technical reason %s ago%s; the next one waits for its time.",
			max(c.Attempt, 1), since, c.noted(" (%s)"))
	case call.Parked:
		return fmt.Sprintf("Attempt %[1]d may have taken effect and nobody can tell%[2]s, so the call has waited for an operator for %[3]s: "+
			"if it took effect, callfan calls answer %[4]s --output TEXT gives the model its result; if not, callfan calls rerun %[4]s "+
			"runs it again; callfan calls answer %[4]s --error TEXT gives it up.", max(c.Attempt, 1), c.noted(" (%s)"), since, c.Key)
	case call.Succeeded, call.Failed:
		return fmt.Sprintf("Its result (%s, %s) was saved %s ago and is not yet accepted by the API%s.", c.State, c.Reason, since, c.answered())
	case call.Submitted:
		return fmt.Sprintf("The API accepted its result %s ago; the session still lists the call.", since)
	case call.Settled:
		return fmt.Sprintf("It was answered; the session stopped listing it %s ago.", since)
	case call.Cancelled:
		return fmt.Sprintf("The session stopped listing it %s ago before a result was accepted: its turn or session ended.", since)
	case call.Obsolete:
		return "The API has another result for it, or refused this one for good."
	}
	return "Its state is unknown to this version."
}

// noted is what the history noted last since the call entered its state, in the given
// form; empty when that is nothing.
func (c Call) noted(form string) string {
	for i := len(c.History) - 1; i >= 0 && c.History[i].State == c.State; i-- {
		if note := strings.TrimRight(c.History[i].Note, ". "); note != "" {
			return fmt.Sprintf(form, printable(note))
		}
	}
	return ""
}

// answered is what the API said last to a saved result. The step into the state tells
// where the result came from; what follows are notes of answers.
func (c Call) answered() string {
	if n := len(c.History); n > 1 && c.History[n-2].State == c.State {
		return c.noted(", which said last: %s")
	}
	return ""
}

// printable puts into quotes what a terminal could take for more than text: notes hold
// texts of executors and of the API.
func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
