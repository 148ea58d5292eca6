package simulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

func (it *responseItem) readMessage(f *itemFields, param string) error {
	if accepted := []string{"assistant", "system", "developer", "user"}; !slices.Contains(accepted, f.Role) {
		return invalidValue(param+".role", f.Role, "'assistant', 'system', 'developer', and 'user'")
	}
	it.role = f.Role
	if isNull(f.Content) {
		return missing(param + ".content")
	}
	var text string
	if json.Unmarshal(f.Content, &text) == nil {
		part := `[{"type":"input_text","text":`
		if f.Role == "assistant" {
			part = `[{"type":"output_text","annotations":[],"text":`
		}
		content := append(append([]byte(part), bytes.TrimSpace(f.Content)...), "}]"...)
		made := newMessageItem(f.Role, content, text)
		if it.id != "" {
			made.raw = bytes.Replace(made.raw, []byte(made.id), []byte(it.id), 1)
			made.id = it.id
		}
		*it = *made
		return nil
	}
	var parts []struct{ Type, Text string }
	if err := json.Unmarshal(f.Content, &parts); err != nil {
		return refused(param+".content", "invalid_type",
			"Invalid type for '%s': expected one of a string or array of content parts.", param+".content")
	}
	var texts []string
	for i, part := range parts {
		switch part.Type {
		case "input_text", "output_text":
			texts = append(texts, part.Text)
		case "input_image", "input_file", "input_audio", "refusal", "summary_text":
		default:
			return invalidValue(fmt.Sprintf("%s.content[%d]", param, i), part.Type,
				"'input_text', 'input_image', 'output_text', 'refusal', 'input_file', 'computer_screenshot', and 'summary_text'")
		}
	}
	it.text = strings.Join(texts, "\n")
	return nil
}

func (it *responseItem) readCall(f *itemFields, param string) error {
	it.client = it.kind == kindSearchCall && f.Execution != nil && *f.Execution == "client"
	it.async = f.Async != nil && *f.Async
	it.incomplete = f.Status != nil && *f.Status == "incomplete"
	if f.Namespace != nil {
		it.namespace = *f.Namespace
	}
	if f.Name != nil {
		it.name = *f.Name
	}
	if err := it.readCallID(f.CallID, param, it.kind == kindSearchCall); err != nil {
		return err
	}
	switch {
	case it.kind == kindSearchCall:
		it.arguments = string(f.Arguments)
		return nil
	case f.Name == nil:
		return missing(param + ".name")
	case it.kind == kindCustomCall && f.Input == nil:
		return missing(param + ".input")
	case it.kind == kindCustomCall:
		it.arguments = *f.Input
		return nil
	case isNull(f.Arguments):
		return missing(param + ".arguments")
	}
	if err := json.Unmarshal(f.Arguments, &it.arguments); err != nil {
		return refused(param+".arguments", "invalid_type",
			"Invalid type for '%s': expected a string, but got an object instead.", param+".arguments")
	}
	return nil
}

func (it *responseItem) readCallID(id *string, param string, optional bool) error {
	param += ".call_id"
	switch {
	case id == nil && optional:
		return nil
	case id == nil:
		return missing(param)
	case *id == "":
		return refused(param, "empty_string",
			"Invalid '%s': empty string. Expected a string with minimum length 1, but got an empty string instead.", param)
	case utf8.RuneCountInString(*id) > maxCallID:
		return tooLong(param, maxCallID, utf8.RuneCountInString(*id))
	}
	it.callID = *id
	return nil
}

func (it *responseItem) readAnswer(f *itemFields, param string) error {
	// An output may come from a tool that the model did not call; then it names the tool.
	named := it.kind == kindFunctionOutput && f.Name != nil && *f.Name != ""
	own := it.kind == kindSearchOutput && f.Execution != nil && *f.Execution == "server"
	if err := it.readCallID(f.CallID, param, named || own); err != nil {
		return err
	}
	it.caller = f.Caller
	if it.kind == kindSearchOutput {
		if f.Tools == nil {
			return missing(param + ".tools")
		}
		var err error
		it.output = f.Tools
		it.tools, err = parseResponseTools(f.Tools, param+".tools", false)
		return err
	}
	param += ".output"
	if isNull(f.Output) {
		return missing(param)
	}
	it.output = f.Output
	var text string
	if json.Unmarshal(f.Output, &text) == nil {
		if n := utf8.RuneCountInString(text); n > maxOutputRunes {
			return tooLong(param, maxOutputRunes, n)
		}
		return nil
	}
	var parts []struct{ Type string }
	if err := json.Unmarshal(f.Output, &parts); err != nil {
		return refused(param, "invalid_type",
			"Invalid type for '%s': expected one of a string or array of input content.", param)
	}
	for i, part := range parts {
		if part.Type != "input_text" && part.Type != "input_image" && part.Type != "input_file" {
			return invalidValue(fmt.Sprintf("%s[%d]", param, i), part.Type, "'input_text', 'input_image', and 'input_file'")
		}
	}
	return nil
}
