package agents

import (
	"slices"
	"strings"

	"github.com/callfan/callfan/pkg/call"
)

// named is the id of the one call of the batch that the message names; empty
// when it names none or several.
func named(message string, answers []call.Answer) string {
	if _, rest, ok := strings.Cut(message, "Unknown pending tool call: "); ok {
		if slices.ContainsFunc(answers, func(a call.Answer) bool { return a.Call == rest }) {
			return rest
		}
	}
	found := ""
	for _, a := range answers {
		if a.Call == found || !distinctive(a.Call) || !mentions(message, a.Call) {
			continue
		}
		if found != "" {
			return ""
		}
		found = a.Call
	}
	return found
}

// distinctive says whether an id cannot be mistaken for a word of a sentence.
func distinctive(id string) bool { return len(id) >= 4 && strings.ContainsAny(id, "0123456789_-") }

// mentions says whether the message contains id as a whole: call_1 is not
// mentioned by a message about call_10.
func mentions(message, id string) bool {
	for from := 0; ; {
		i := strings.Index(message[from:], id)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(id)
		if (start == 0 || !idByte(message[start-1])) && (end == len(message) || !idByte(message[end])) {
			return true
		}
		from = start + 1
	}
}

func idByte(b byte) bool {
	return b == '_' || b == '-' || ('0' <= b && b <= '9') || ('a' <= b && b <= 'z') || ('A' <= b && b <= 'Z')
}
