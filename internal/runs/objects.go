package runs

import (
	"bytes"
	"encoding/json"
)

// object writes a JSON object of raw values.
type object struct{ body []byte }

func (o *object) add(name string, value json.RawMessage) {
	if len(value) == 0 {
		return
	}
	before := byte(',')
	if len(o.body) == 0 {
		before = '{'
	}
	o.body = appendText(append(o.body, before), name)
	o.body = append(append(o.body, ':'), value...)
}

func (o *object) text(name, value string) { o.add(name, appendText(nil, value)) }

func (o *object) end() json.RawMessage {
	if len(o.body) == 0 {
		return json.RawMessage("{}")
	}
	return append(o.body, '}')
}

// array writes a JSON array of raw values.
func array(values []json.RawMessage) json.RawMessage {
	out := []byte{'['}
	for i, v := range values {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	return append(out, ']')
}

// appendText appends a JSON string, with < and & as they are.
func appendText(dst []byte, s string) []byte {
	var quoted bytes.Buffer
	e := json.NewEncoder(&quoted)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always marshals
	return append(dst, bytes.TrimSuffix(quoted.Bytes(), []byte("\n"))...)
}
