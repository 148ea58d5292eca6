package functionfile

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Error is what is wrong with a file.
type Error struct {
	// File is the path as it was given; Line and Column count from 1, and are 0 when
	// the whole file is meant.
	File         string
	Line, Column int
	// Message says what is wrong and what to do about it.
	Message string
}

// Error is "file:line:column: message".
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// source makes errors about places in one file.
type source string

func (s source) fault(n ast.Node, format string, args ...any) error {
	e := &Error{File: string(s), Message: fmt.Sprintf(format, args...)}
	if n != nil {
		if token := n.GetToken(); token != nil {
			e.Line, e.Column = token.Position.Line, token.Position.Column
		}
	}
	return e
}

// unknownKey names the key, the nearest known one, and all known ones.
func (s source) unknownKey(e entry, where string, known []string) error {
	hint := ""
	best := 3
	for _, k := range known {
		if d := distance(e.name, k); d < best {
			best, hint = d, fmt.Sprintf("; did you mean %q?", k)
		}
	}
	return s.fault(e.key, "%s has no key %q%s (known keys: %s)", where, e.name, hint, strings.Join(known, ", "))
}

// distance is the number of edits between two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := min(row[j+1]+1, row[j]+1, diagonal+1)
			if a[i] == b[j] {
				next = min(next, diagonal)
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
