package mcptools

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// metaRaw is the key of _meta under which the very bytes of a value are kept, as a
// text, beside the value: the SDK decodes schemas and structured content into Go
// values, which rounds big numbers and sorts members.
const metaRaw = "io.github.callfan/raw"

// keepRaw gives a JSON-RPC message with the bytes of inputSchema in each tool and of
// structuredContent kept under metaRaw. Any other message stays as it is.
func keepRaw(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"inputSchema"`)) && !bytes.Contains(message, []byte(`"structuredContent"`)) {
		return message
	}
	var envelope map[string]json.RawMessage
	if json.Unmarshal(message, &envelope) != nil {
		return message
	}
	var result map[string]json.RawMessage
	if json.Unmarshal(envelope["result"], &result) != nil || result == nil {
		return message
	}
	var tools []map[string]json.RawMessage
	if list, ok := result["tools"]; ok && json.Unmarshal(list, &tools) == nil {
		for _, tool := range tools {
			keep(tool, "inputSchema")
		}
		result["tools"] = encode(tools)
	}
	keep(result, "structuredContent")
	envelope["result"] = encode(result)
	return encode(envelope)
}

// keep puts the bytes of a member into the object's _meta.
func keep(object map[string]json.RawMessage, member string) {
	value, ok := object[member]
	if !ok {
		return
	}
	var meta map[string]json.RawMessage
	if json.Unmarshal(object["_meta"], &meta) != nil || meta == nil {
		meta = make(map[string]json.RawMessage)
	}
	meta[metaRaw] = encode(string(value))
	object["_meta"] = encode(meta)
}

// rawOf is what keep kept; where there is nothing, the value is encoded anew.
func rawOf(meta mcp.Meta, value any) json.RawMessage {
	if kept, ok := meta[metaRaw].(string); ok {
		return json.RawMessage(kept)
	}
	if value == nil {
		return nil
	}
	return encode(value)
}

// encode is json.Marshal without HTML escaping, for values that always encode.
func encode(v any) json.RawMessage {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
