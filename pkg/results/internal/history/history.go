// Package history is the text in which stores keep the steps of a call. Each step
// is
//
//	LINE-BREAK STATE AFTER "." ATTEMPT "." HANDOVER [" " NOTE]
//
// where STATE is a letter and AFTER the milliseconds from the claim to the step.
// A step says everything by itself, so that any others can be left out.
//
// The scripts of redisstore write the same text.
package history

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

const (
	// Max is how many bytes of steps a call keeps.
	Max = 4 << 10
	// First is how many of the first steps stay when those after them are left out.
	First = 8
)

// Append appends a step, after the claim. The note must be one of Note's.
func Append(
	text []byte, state call.State, after time.Duration, attempt, handover int, note string,
) []byte {
	text = append(text, '\n')
	text = append(text, Letters[state]...)
	text = strconv.AppendInt(text, max(0, after.Milliseconds()), 10)
	text = append(text, '.')
	text = strconv.AppendInt(text, int64(attempt), 10)
	text = append(text, '.')
	text = strconv.AppendInt(text, int64(handover), 10)
	if note != "" {
		text = append(text, ' ')
		text = append(text, note...)
	}
	return text
}

// Cut leaves out steps of the middle, so that max bytes are not exceeded.
func Cut(text []byte, limit int) []byte {
	if len(text) <= limit {
		return text
	}
	var starts []int
	for i, b := range text {
		if b == '\n' {
			starts = append(starts, i)
		}
	}
	head := min(First, len(starts)/2)
	for head > 0 && starts[head] > limit/2 {
		head--
	}
	kept := starts[head]
	newest := bytes.IndexByte(text[len(text)-(limit-kept):], '\n')
	if newest < 0 {
		return text[:kept:kept]
	}
	return append(text[:kept:kept], text[len(text)-(limit-kept)+newest:]...)
}

// LatestNote is the note of the latest step.
func LatestNote(text []byte) string {
	_, note, _ := bytes.Cut(text[bytes.LastIndexByte(text, '\n')+1:], []byte{' '})
	return string(note)
}

// Parse reads the steps of a call that was claimed at the given time. What cannot
// be read is left out: steps are told to people, and nothing depends on them.
// Their times never decrease, even when the clock was set back.
func Parse(text string, claimed time.Time) []results.Step {
	text, ok := strings.CutPrefix(text, "\n")
	if !ok {
		return nil
	}
	steps := make([]results.Step, 0, strings.Count(text, "\n")+1)
	latest := time.Time{}
	for piece := range strings.SplitSeq(text, "\n") {
		step, ok := parse(piece, claimed)
		if !ok {
			continue
		}
		if step.At.Before(latest) {
			step.At = latest
		}
		latest = step.At
		steps = append(steps, step)
	}
	return steps
}

func parse(piece string, claimed time.Time) (step results.Step, ok bool) {
	numbers, note, _ := strings.Cut(piece, " ")
	if numbers == "" {
		return step, false
	}
	state, known := States[numbers[:1]]
	after, counts, _ := strings.Cut(numbers[1:], ".")
	attempt, handover, _ := strings.Cut(counts, ".")
	ms, errAfter := strconv.ParseInt(after, 10, 64)
	a, errAttempt := strconv.Atoi(attempt)
	h, errHandover := strconv.Atoi(handover)
	if !known || errAfter != nil || errAttempt != nil || errHandover != nil {
		return step, false
	}
	return results.Step{
		At: claimed.Add(time.Duration(ms) * time.Millisecond), State: state, Attempt: a, Handover: h, Note: note,
	}, true
}
