// Package body is the stored form of a call's result, the same in every store:
// the bytes of output and error stand in it as they are, so nothing is decoded,
// compacted or escaped on the way.
//
// The form is: version (1), success (0 or 1), the length of the reason as a
// varint, the reason, the length of the error as a varint, the error, and the
// output up to the end.
package body

import (
	"encoding/binary"
	"errors"

	"github.com/callfan/callfan/pkg/call"
)

const version = 1

// ErrMalformed is returned by Parse for bytes that Append did not make.
var ErrMalformed = errors.New("stored result is malformed")

// Append appends the stored form of r to dst.
func Append(dst []byte, r call.Result) []byte {
	success := byte(0)
	if r.Success {
		success = 1
	}
	dst = append(dst, version, success)
	dst = binary.AppendUvarint(dst, uint64(len(r.Reason)))
	dst = append(dst, r.Reason...)
	dst = binary.AppendUvarint(dst, uint64(len(r.Error)))
	dst = append(dst, r.Error...)
	return append(dst, r.Output...)
}

// Parse reads what Append wrote. The result does not share memory with b.
func Parse(b []byte) (*call.Result, error) {
	if len(b) < 2 || b[0] != version || b[1] > 1 {
		return nil, ErrMalformed
	}
	r := &call.Result{Success: b[1] == 1}
	rest := b[2:]
	var ok bool
	if r.Reason, rest, ok = cut(rest); !ok {
		return nil, ErrMalformed
	}
	if r.Error, rest, ok = cut(rest); !ok {
		return nil, ErrMalformed
	}
	if len(rest) > 0 {
		r.Output = append([]byte(nil), rest...)
	}
	return r, nil
}

func cut(b []byte) (field string, rest []byte, ok bool) {
	n, width := binary.Uvarint(b)
	if width <= 0 || n > uint64(len(b)-width) {
		return "", nil, false
	}
	b = b[width:]
	return string(b[:n]), b[n:], true
}
