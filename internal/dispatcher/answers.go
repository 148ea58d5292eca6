package dispatcher

import (
	"fmt"
	"strings"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// mostAnswers is how many different answers of the API a note holds.
const mostAnswers = 5

// note tells a call's history what the API said about its batch.
func (b *submission) note(answer string, t *tracked) string {
	text := fmt.Sprintf("batch %.12s of %d: %s", b.IdempotencyKey, len(b.calls), answer)
	if len(t.answers) > 0 {
		text += "; before that " + strings.Join(t.answers, ", ")
	}
	return text
}

// noteRefusal adds the API's refusal to the history of the batch's calls, unless it is
// what the API said last: a service that is down for an hour makes one note.
func (s *session) noteRefusal(b *submission, r *call.Refusal, now time.Time) {
	answer := string(r.Class)
	if r.Status != 0 {
		answer = fmt.Sprintf("%s (HTTP %d)", r.Class, r.Status)
	}
	for _, t := range b.calls {
		n := len(t.answers)
		if n > 0 && t.answers[n-1] == answer {
			continue
		}
		note := b.note(answer, t)
		if n == mostAnswers {
			t.answers = t.answers[1:]
		}
		t.answers = append(t.answers, answer)
		s.moves.add(results.Move{Key: t.Key, To: t.state, Note: note}, nil, now)
	}
}
