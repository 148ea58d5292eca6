package redisstore

import (
	"errors"
	"strconv"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
	"github.com/callfan/callfan/pkg/results/internal/body"
)

var errReply = errors.New("redis: a script gave an answer of another shape")

// fenced says that the script refused the fence.
func (op *operation) fenced() bool {
	text, _ := op.reply.(string)
	return text == "FENCED"
}

// rows is a script's answer as its clock and n rows of width values.
func (op *operation) rows(n, width int) (now int64, values []any, err error) {
	values, ok := op.reply.([]any)
	if !ok || len(values) != 1+n*width {
		return 0, nil, errReply
	}
	now, err = strconv.ParseInt(text(values[0]), 10, 64)
	if err != nil {
		return 0, nil, errReply
	}
	return now, values[1:], nil
}

// text is a bulk reply; nil is the empty text.
func text(value any) string {
	s, _ := value.(string)
	return s
}

// texts is an array of bulk replies.
func texts(value any) ([]string, error) {
	values, ok := value.([]any)
	if !ok {
		return nil, errReply
	}
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = text(v)
	}
	return out, nil
}

// record builds a record from a call's entry and its result. A call without an
// entry is absent.
func record(key call.Key, meta, result any, now int64) (results.Record, error) {
	if text(meta) == "" {
		return results.Record{Key: key}, nil
	}
	r, err := parseMeta(key, text(meta), now)
	if err != nil || result == nil {
		return r, err
	}
	r.Result, err = body.Parse([]byte(text(result)))
	return r, err
}
