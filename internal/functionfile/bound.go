package functionfile

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
)

const (
	// maxOutput is the most that is read of an output: the largest max_payload that
	// nats-server recommends. The server's own limit is checked when it is reported.
	maxOutput = 8 << 20
	// maxError is the most of an error text that the model gets.
	maxError = 4 << 10
)

func tooLarge() error {
	return executor.Failure(call.ReasonTooLarge, fmt.Sprintf("result too large (more than %d bytes)", maxOutput))
}

// invalidArguments is the failure of arguments that the function itself found unfit.
func invalidArguments(text string) error {
	const prefix = "invalid arguments: "
	return executor.Failure(call.ReasonInvalidArguments, prefix+strings.TrimPrefix(text, prefix))
}

// head keeps the first n bytes of what is written and tells once when there is more.
type head struct {
	kept []byte
	n    int
	full func()
	over bool
}

func (h *head) Write(p []byte) (int, error) {
	room := h.n - len(h.kept)
	h.kept = append(h.kept, p[:min(room, len(p))]...)
	if len(p) > room && !h.over {
		h.over = true
		if h.full != nil {
			h.full()
		}
	}
	return len(p), nil
}

// tail keeps the last n bytes of what is written.
type tail struct {
	kept []byte
	n    int
	cut  bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.n; over > 0 {
		t.cut = true
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// text is the tail as a text for the model, "" when there is nothing to read.
func (t *tail) text() string {
	kept := t.kept
	for t.cut && len(kept) > 0 && !utf8.RuneStart(kept[0]) {
		kept = kept[1:]
	}
	text := strings.TrimSpace(strings.ToValidUTF8(string(kept), "\uFFFD"))
	if t.cut {
		return "…" + text
	}
	return text
}

// outputFormat is how the bytes of an output are meant.
type outputFormat string

const (
	formatText    outputFormat = "text"
	formatContent outputFormat = "content"
	// formatNone takes no output: a success is no value.
	formatNone outputFormat = "none"
)

// output makes the output of a function that succeeded.
func (f outputFormat) output(raw []byte) (executor.Output, error) {
	switch f {
	case formatNone:
		return executor.Output{}, nil
	case formatText:
		return executor.Text(string(raw)), nil
	}
	content, err := executor.ParseContent(raw)
	if err != nil {
		return executor.Output{}, executor.Failure(call.ReasonInvalidOutput, "the function gave an "+err.Error())
	}
	return content.Output()
}
