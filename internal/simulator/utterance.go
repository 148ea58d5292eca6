package simulator

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"time"
	"unicode/utf8"
)

// utterance is one output item that the model is going to produce. Its fields are exported for the state file.
type utterance struct {
	ID        string
	Kind      string
	CallID    string `json:",omitempty"`
	Namespace string `json:",omitempty"`
	Name      string `json:",omitempty"`
	// Text is what arrives in pieces: arguments, input, text or refusal.
	Text       string          `json:",omitempty"`
	Refusal    bool            `json:",omitempty"`
	Async      bool            `json:",omitempty"`
	CallerID   string          `json:",omitempty"`
	Incomplete bool            `json:",omitempty"`
	Execution  string          `json:",omitempty"` // of a tool search
	Tools      json.RawMessage `json:",omitempty"` // of a tool search by the server
	// After is the time from the start of the response.
	After time.Duration `json:",omitempty"`
}

// utteranceStage is how far an item is.
type utteranceStage int

const (
	stageAdded utteranceStage = iota // nothing of Text yet
	stageDone
)

// append renders the item at a stage.
func (u *utterance) append(b []byte, stage utteranceStage) []byte {
	text, status := u.Text, itemCompleted
	if u.Incomplete {
		status = itemIncomplete
	}
	if stage == stageAdded {
		text, status = "", itemInProgress
	}
	b = appendString(append(b, `{"id":`...), u.ID)
	b = appendStringField(b, "type", u.Kind)
	switch u.Kind {
	case kindReasoning:
		b = append(b, `,"summary":[]`...)
		encrypted := encryptReasoning(u.ID)
		if stage == stageAdded {
			encrypted = encrypted[:len(encrypted)/2]
		}
		return append(appendStringField(b, "encrypted_content", encrypted), '}')
	case kindMessage:
		b = appendStringField(b, "status", string(status))
		b = append(b, `,"role":"assistant","content":[`...)
		if stage == stageDone {
			b = u.appendPart(b, text)
		}
		return append(b, `]}`...)
	case kindSearchCall:
		b = appendRawField(b, "arguments", []byte(u.Text))
		b = appendStringOrNull(appendKey(b, "call_id"), u.CallID)
		b = appendStringField(b, "execution", u.Execution)
		return append(appendStringField(b, "status", string(status)), '}')
	case kindSearchOutput:
		b = appendRawField(b, "tools", u.Tools)
		b = appendStringOrNull(appendKey(b, "call_id"), u.CallID)
		b = appendStringField(b, "execution", u.Execution)
		return append(appendStringField(b, "status", string(status)), '}')
	case kindCustomCall:
		b = appendStringField(b, "input", text)
	default:
		b = appendStringField(b, "arguments", text)
	}
	b = appendStringField(b, "call_id", u.CallID)
	b = appendStringField(b, "name", u.Name)
	if u.Namespace != "" {
		b = appendStringField(b, "namespace", u.Namespace)
	}
	if u.Async {
		b = appendBoolField(b, "async", true)
	}
	if u.CallerID != "" {
		b = appendStringField(append(b, `,"caller":{"type":"program"`...), "caller_id", u.CallerID)
		b = append(b, '}')
	}
	return append(appendStringField(b, "status", string(status)), '}')
}

// appendPart renders the content part of a message.
func (u *utterance) appendPart(b []byte, text string) []byte {
	if u.Refusal {
		return append(appendString(append(b, `{"type":"refusal","refusal":`...), text), '}')
	}
	b = appendString(append(b, `{"type":"output_text","annotations":[],"logprobs":[],"text":`...), text)
	return append(b, '}')
}

// item is the finished item.
func (u *utterance) item() *responseItem {
	it := &responseItem{
		raw: u.append(nil, stageDone), id: u.ID, kind: u.Kind, callID: u.CallID, namespace: u.Namespace, name: u.Name,
		async: u.Async, incomplete: u.Incomplete, client: u.Execution == "client",
	}
	switch u.Kind {
	case kindMessage:
		it.role, it.text = "assistant", u.Text
	case kindReasoning:
		it.encrypted = encryptReasoning(u.ID)
	case kindSearchOutput:
		it.tools, _ = parseResponseTools(u.Tools, "tools", true)
	default:
		it.arguments = u.Text
	}
	return it
}

// responseEvent is a stream event without its sequence number: the type, and the fields after it.
type responseEvent struct {
	kind   string
	fields []byte // each with its comma in front
}

// events returns what is streamed while the item at an index is produced.
func (u *utterance) events(index int) []responseEvent {
	var events []responseEvent
	add := func(kind string, fields func(b []byte) []byte) {
		b := appendStringField(nil, "item_id", u.ID)
		events = append(events, responseEvent{kind, fields(appendIntField(b, "output_index", int64(index)))})
	}
	item := func(kind string, stage utteranceStage) {
		b := appendIntField(nil, "output_index", int64(index))
		events = append(events, responseEvent{kind, u.append(appendKey(b, "item"), stage)})
	}
	pieces := func(kind string, extra func(b []byte) []byte) {
		for _, piece := range inPieces(u.Text) {
			add(kind, func(b []byte) []byte { return appendStringField(extra(b), "delta", piece) })
		}
	}
	none := func(b []byte) []byte { return b }
	part := func(b []byte) []byte { return append(b, `,"content_index":0`...) }

	item("response.output_item.added", stageAdded)
	switch u.Kind {
	case kindFunctionCall:
		pieces("response.function_call_arguments.delta", none)
		add("response.function_call_arguments.done", func(b []byte) []byte {
			return appendStringField(appendStringField(b, "name", u.Name), "arguments", u.Text)
		})
	case kindCustomCall:
		pieces("response.custom_tool_call_input.delta", none)
		add("response.custom_tool_call_input.done", func(b []byte) []byte { return appendStringField(b, "input", u.Text) })
	case kindMessage:
		kind, key := "response.output_text", "text"
		extra := func(b []byte) []byte { return append(part(b), `,"logprobs":[]`...) }
		if u.Refusal {
			kind, key, extra = "response.refusal", "refusal", part
		}
		add("response.content_part.added", func(b []byte) []byte { return u.appendPart(appendKey(part(b), "part"), "") })
		pieces(kind+".delta", extra)
		add(kind+".done", func(b []byte) []byte { return appendStringField(extra(b), key, u.Text) })
		add("response.content_part.done", func(b []byte) []byte { return u.appendPart(appendKey(part(b), "part"), u.Text) })
	}
	item("response.output_item.done", stageDone)
	return events
}

// inPieces splits a text into a few pieces, at least two when it has two characters.
func inPieces(text string) []string {
	size := max(1, (len(text)+5)/6)
	var pieces []string
	for text != "" {
		n := min(size, len(text))
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		pieces, text = append(pieces, text[:n]), text[n:]
	}
	return pieces
}

// encryptReasoning stands for the encrypted content of a reasoning item. It depends on the item's id only, so it can be
// verified without being stored.
func encryptReasoning(id string) string {
	mac := hmac.New(sha256.New, []byte("reasoning"))
	mac.Write([]byte(id))
	return "gAAAAA" + base64.URLEncoding.EncodeToString(mac.Sum(nil))
}
