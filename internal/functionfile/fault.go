package functionfile

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/callfan/callfan/internal/spelling"
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
	if near := spelling.Nearest(e.name, known); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return s.fault(e.key, "%s has no key %q%s (known keys: %s)", where, e.name, hint, strings.Join(known, ", "))
}
