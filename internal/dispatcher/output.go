package dispatcher

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/callfan/callfan/pkg/call"
)

// acceptable makes sure that a result can enter a batch: one output that the API
// cannot read would have it refuse all results of the batch. The rule about a
// result is applied before it is saved, so that what is saved is what is sent.
func (d *Dispatcher) acceptable(session string, r call.Result) call.Result {
	if !r.Success {
		if len(r.Error) > d.cfg.MaxResultBytes {
			return tooLarge(len(r.Error), d.cfg.MaxResultBytes)
		}
		return r
	}
	if len(r.Output) > d.cfg.MaxResultBytes {
		return tooLarge(len(r.Output), d.cfg.MaxResultBytes)
	}
	output, repaired := repairText(r.Output)
	if repaired {
		d.obs.Count(EventRepairedText)
		if d.cfg.InvalidText == "error" {
			return call.Result{Reason: call.ReasonInvalidOutput, Error: "the function returned text that is not valid Unicode"}
		}
	}
	if err := checkContent(output, d.files != nil && d.files(session)); err != nil {
		return call.Result{Reason: call.ReasonInvalidOutput, Error: "the function returned an output that cannot be used: " + err.Error()}
	}
	r.Output = output
	return r
}

func tooLarge(n, limit int) call.Result {
	return call.Result{Reason: call.ReasonTooLarge, Error: fmt.Sprintf("result too large (%d bytes, limit %d)", n, limit)}
}

// repairText replaces what the API refuses inside JSON strings, invalid UTF-8 and
// surrogate escapes without their partner, by U+FFFD. Bytes that are fine are not
// touched, and the very same slice comes back when all are.
func repairText(raw []byte) (fixed []byte, repaired bool) {
	if utf8.Valid(raw) && !bytes.Contains(raw, []byte(`\u`)) {
		return raw, false
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == '\\' && i+1 < len(raw):
			n, ok := escapeLength(raw[i:])
			if !ok {
				out, repaired = append(out, `\ufffd`...), true
			} else {
				out = append(out, raw[i:i+n]...)
			}
			i += n
		case c < utf8.RuneSelf:
			out = append(out, c)
			i++
		default:
			r, n := utf8.DecodeRune(raw[i:])
			if r == utf8.RuneError && n == 1 {
				out, repaired = append(out, "\uFFFD"...), true
			} else {
				out = append(out, raw[i:i+n]...)
			}
			i += n
		}
	}
	if !repaired {
		return raw, false
	}
	return out, true
}

// escapeLength measures the escape at the start of b, a surrogate pair as one; not
// ok when it is a surrogate without its partner.
func escapeLength(b []byte) (n int, ok bool) {
	if b[1] != 'u' {
		return 2, true
	}
	switch u := hex4(b[2:]); {
	case u < 0:
		return 2, true // not JSON; the decoder has refused it before
	case u < 0xD800 || u > 0xDFFF:
		return 6, true
	case u < 0xDC00 && len(b) >= 12 && b[6] == '\\' && b[7] == 'u':
		if low := hex4(b[8:]); low >= 0xDC00 && low <= 0xDFFF {
			return 12, true
		}
	}
	return 6, false
}

func hex4(b []byte) int {
	if len(b) < 4 {
		return -1
	}
	u := 0
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			u = u<<4 | int(c-'0')
		case c >= 'a' && c <= 'f':
			u = u<<4 | int(c-'a'+10)
		case c >= 'A' && c <= 'F':
			u = u<<4 | int(c-'A'+10)
		default:
			return -1
		}
	}
	return u
}

// checkContent accepts a string, null, or an array of input_text and input_image
// parts without repeated member names, which is what the Agents API takes, and where
// files is set also input_file, as the Responses API does.
func checkContent(output []byte, files bool) error {
	output = bytes.TrimSpace(output)
	if len(output) == 0 || output[0] == '"' || string(output) == "null" {
		return nil
	}
	if output[0] != '[' {
		return errors.New("neither a string nor a content array")
	}
	if err := noRepeatedNames(output); err != nil {
		return err
	}
	var parts []struct {
		Type string          `json:"type"`
		Text json.RawMessage `json:"text"`
	}
	if err := json.Unmarshal(output, &parts); err != nil {
		return fmt.Errorf("not a content array: %w", err)
	}
	if len(parts) == 0 {
		return errors.New("an empty content array")
	}
	for i, p := range parts {
		switch {
		case p.Type == "input_text" && len(p.Text) > 0 && p.Text[0] == '"':
		case p.Type == "input_image", p.Type == "input_file" && files:
		case p.Type == "input_text":
			return fmt.Errorf("part %d has no text", i)
		default:
			return fmt.Errorf("part %d has the type %q; use input_text or input_image", i, p.Type)
		}
	}
	return nil
}

// noRepeatedNames refuses objects that name a member twice, at any depth.
func noRepeatedNames(raw []byte) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	type frame struct {
		names map[string]bool // nil in an array
		value bool            // in an object: a value comes next
	}
	var stack []frame
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		top := len(stack) - 1
		if name, ok := tok.(string); ok && top >= 0 && stack[top].names != nil && !stack[top].value {
			if stack[top].names[name] {
				return fmt.Errorf("the member %q appears twice", name)
			}
			stack[top].names[name] = true
			stack[top].value = true
			continue
		}
		if top >= 0 {
			stack[top].value = false
		}
		switch tok {
		case json.Delim('{'):
			stack = append(stack, frame{names: map[string]bool{}})
		case json.Delim('['):
			stack = append(stack, frame{})
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:top]
		}
	}
}
