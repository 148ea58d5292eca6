package simulator

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// responseRequest is a checked POST /responses.
type responseRequest struct {
	fields   map[string]json.RawMessage
	previous string
	// conversation is its id; empty for none.
	conversation                      string
	tools                             []responseTool
	choice                            toolChoice
	parallel, store, stream           bool
	background, obfuscate, withReason bool
	input                             []*responseItem
}

// echoed are the parameters that a response repeats, in that order, with their defaults.
var echoed = []struct{ name, otherwise string }{
	{"instructions", "null"},
	{"max_output_tokens", "null"},
	{"max_tool_calls", "null"},
	{"model", "null"},
	{"parallel_tool_calls", "true"},
	{"previous_response_id", "null"},
	{"prompt_cache_key", "null"},
	{"reasoning", `{"effort":null,"summary":null}`},
	{"safety_identifier", "null"},
	{"service_tier", `"default"`},
	{"store", "true"},
	{"temperature", "1.0"},
	{"text", `{"format":{"type":"text"},"verbosity":"medium"}`},
	{"tool_choice", `"auto"`},
	{"top_logprobs", "0"},
	{"top_p", "1.0"},
	{"truncation", `"disabled"`},
	{"user", "null"},
	{"metadata", "{}"},
}

// otherParameters are accepted and do nothing here.
var otherParameters = []string{
	"access_programs", "background", "context_management", "conversation", "image", "include", "input", "moderation", "prompt",
	"prompt_cache_options", "prompt_cache_retention", "stream", "stream_options", "tools",
}

func knownParameter(name string) bool {
	return slices.Contains(otherParameters, name) ||
		slices.ContainsFunc(echoed, func(e struct{ name, otherwise string }) bool { return e.name == name })
}

// parseResponseRequest checks a body as far as it can be checked by itself.
func (s *Simulator) parseResponseRequest(body []byte) (*responseRequest, error) {
	req := &responseRequest{parallel: true, store: true, obfuscate: s.sw.Obfuscation}
	if err := decodeFields(body, &req.fields); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(req.fields)) {
		if !knownParameter(name) {
			return nil, refused(name, "unknown_parameter", "Unknown parameter: '%s'.", name)
		}
	}
	var model string
	if err := req.decode("model", &model, "a string"); err != nil {
		return nil, err
	}
	if model == "" && isNull(req.fields["prompt"]) {
		return nil, missing("model")
	}
	for name, into := range map[string]*bool{
		"parallel_tool_calls": &req.parallel, "store": &req.store, "stream": &req.stream, "background": &req.background,
	} {
		if err := req.decode(name, into, "a boolean"); err != nil {
			return nil, err
		}
	}
	if req.background && !req.store {
		return nil, refused("background", "", "Background responses need `store` to be true.")
	}
	if err := checkResponseMetadata(req.fields["metadata"]); err != nil {
		return nil, err
	}
	if err := req.parseState(s.cfg.Fixtures); err != nil {
		return nil, err
	}
	var options struct {
		Obfuscation *bool `json:"include_obfuscation"`
	}
	if err := req.decode("stream_options", &options, "an object"); err != nil {
		return nil, err
	}
	req.obfuscate = req.obfuscate && (options.Obfuscation == nil || *options.Obfuscation)
	if err := req.parseModelling(s); err != nil {
		return nil, err
	}
	return req, nil
}

// parseModelling reads what the model works with: tools, the choice among them, and the input.
func (req *responseRequest) parseModelling(s *Simulator) (err error) {
	var reasoning struct {
		Effort *string `json:"effort"`
	}
	if err := req.decode("reasoning", &reasoning, "an object"); err != nil {
		return err
	}
	req.withReason = s.sw.ReasoningItems && (reasoning.Effort == nil || *reasoning.Effort != "none")
	if req.tools, err = parseResponseTools(req.fields["tools"], "tools", s.cfg.Fixtures); err != nil {
		return err
	}
	if req.choice, err = parseToolChoice(req.fields["tool_choice"], req.tools); err != nil {
		return err
	}
	if isNull(req.fields["input"]) && req.previous == "" && req.conversation == "" && isNull(req.fields["prompt"]) {
		return missing("input")
	}
	req.input, err = parseResponseInput(req.fields["input"], "input")
	return err
}

// parseState reads which context the response continues.
func (req *responseRequest) parseState(fixtures bool) error {
	if err := req.decode("previous_response_id", &req.previous, "a string"); err != nil {
		return err
	}
	if raw := req.fields["conversation"]; !isNull(raw) && json.Unmarshal(raw, &req.conversation) != nil {
		var object struct {
			ID string `json:"id"`
		}
		if err := req.decode("conversation", &object, "a string or an object"); err != nil {
			return err
		}
		if req.conversation = object.ID; object.ID == "" {
			return missing("conversation.id")
		}
	}
	switch {
	case fixtures:
		req.previous = "" // openai-go's own test sends both.
	case req.previous != "" && req.conversation != "":
		return refused("", "mutually_exclusive_parameters",
			"Mutually exclusive parameters: Ensure you are only providing one of: 'previous_response_id' or 'conversation'.")
	case req.previous != "" && !strings.HasPrefix(req.previous, "resp"):
		return wrongPrefix("previous_response_id", req.previous, "resp")
	case req.conversation != "" && !strings.HasPrefix(req.conversation, "conv"):
		return wrongPrefix("conversation", req.conversation, "conv")
	}
	return nil
}

func wrongPrefix(param, id, prefix string) *apiError {
	return refused(param, "invalid_value", "Invalid '%s': '%s'. Expected an ID that begins with '%s'.", param, id, prefix)
}

// decode reads a parameter; absent and null leave into as it is.
func (req *responseRequest) decode(name string, into any, expected string) error {
	raw := req.fields[name]
	if isNull(raw) {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return refused(name, "invalid_type", "Invalid type for '%s': expected %s.", name, expected)
	}
	return nil
}

func checkResponseMetadata(raw json.RawMessage) error {
	if isNull(raw) {
		return nil
	}
	var m map[string]string
	if err := json.Unmarshal(raw, &m); err != nil {
		return refused("metadata", "invalid_type", "Invalid type for 'metadata': expected an object of strings.")
	}
	if len(m) > maxMetadataPairs {
		return refused("metadata", "object_above_max_properties",
			"Invalid 'metadata': too many properties. Expected an object with at most %d properties, but got an object with %d "+
				"properties instead.", maxMetadataPairs, len(m))
	}
	for key, value := range m {
		if n := utf8.RuneCountInString(key); n > maxMetadataKey {
			return tooLong("metadata", maxMetadataKey, n)
		}
		if n := utf8.RuneCountInString(value); n > maxMetadataValue {
			return tooLong("metadata."+key, maxMetadataValue, n)
		}
	}
	return nil
}

// appendEcho renders the parameters that a response repeats.
func (req *responseRequest) appendEcho(b []byte) []byte {
	for _, e := range echoed {
		raw := req.fields[e.name]
		if isNull(raw) {
			raw = json.RawMessage(e.otherwise)
		}
		b = appendRawField(b, e.name, raw)
	}
	b = appendKey(b, "conversation")
	if req.conversation == "" {
		b = append(b, "null"...)
	} else {
		b = append(appendString(append(b, `{"id":`...), req.conversation), '}')
	}
	return appendTools(appendKey(b, "tools"), req.fields["tools"])
}

// appendTools repeats the tools as they came; strict is on for functions that do not say.
func appendTools(b []byte, raw json.RawMessage) []byte {
	var entries []json.RawMessage
	if isNull(raw) || json.Unmarshal(raw, &entries) != nil {
		return append(b, "[]"...)
	}
	b = append(b, '[')
	for i, entry := range entries {
		if i > 0 {
			b = append(b, ',')
		}
		var fields struct {
			Type   string          `json:"type"`
			Strict json.RawMessage `json:"strict"`
		}
		if json.Unmarshal(entry, &fields) == nil && fields.Type == "function" && fields.Strict == nil {
			entry = append(slices.Clip(entry[:len(entry)-1]), `,"strict":true}`...)
		}
		b = append(b, entry...)
	}
	return append(b, ']')
}
