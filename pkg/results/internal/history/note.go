package history

import (
	"strings"
	"unicode/utf8"

	"github.com/callfan/callfan/pkg/results"
)

var lineBreaks = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ")

// Note is a note as stores keep it: without line breaks and of at most
// results.MaxNote bytes, cut between two runes.
func Note(note string) string {
	if strings.ContainsAny(note, "\r\n") {
		note = lineBreaks.Replace(note)
	}
	if len(note) <= results.MaxNote {
		return note
	}
	end := results.MaxNote
	for end > results.MaxNote-utf8.UTFMax && !utf8.RuneStart(note[end]) {
		end--
	}
	return note[:end]
}
