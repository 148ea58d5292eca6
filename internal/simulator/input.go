package simulator

import (
	"encoding/json"
	"strings"
)

// parseInput reads the input of a creation (a string, or messages) or of a message event (messages). It returns the
// content for the history and the joined text.
func (s *Simulator) parseInput(raw json.RawMessage) (userInput, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		content := append([]byte(nil), `[{"type":"input_text","text":`...)
		content = append(append(content, raw...), "}]"...)
		return s.boundedInput(userInput{content: content, text: text})
	}
	var messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &messages); err != nil || len(messages) == 0 {
		return userInput{}, invalidRequest("input must be a string or a non-empty array of messages.")
	}
	var (
		texts   []string
		content = []byte{'['}
	)
	for _, message := range messages {
		if message.Role != "user" {
			return userInput{}, invalidRequest("input messages must have the role user.")
		}
		if json.Unmarshal(message.Content, &text) == nil {
			texts = append(texts, text)
			content = append(append(append(content, `{"type":"input_text","text":`...), message.Content...), "},"...)
			continue
		}
		var parts []json.RawMessage
		if err := json.Unmarshal(message.Content, &parts); err != nil || len(parts) == 0 {
			return userInput{}, invalidRequest("input message content must not be empty.")
		}
		for _, part := range parts {
			var p struct{ Type, Text string }
			if err := json.Unmarshal(part, &p); err != nil || p.Type != "input_text" && p.Type != "input_image" {
				return userInput{}, invalidRequest("input message content must be input_text or input_image.")
			}
			if p.Type == "input_text" {
				texts = append(texts, p.Text)
			}
			content = append(append(content, part...), ',')
		}
	}
	content[len(content)-1] = ']'
	return s.boundedInput(userInput{content: content, text: strings.Join(texts, "\n")})
}

func (s *Simulator) boundedInput(input userInput) (userInput, error) {
	if limit := s.sw.MaxInputBytes; limit > 0 && len(input.content) > limit {
		return userInput{}, invalidRequest("The input is larger than %d bytes.", limit)
	}
	return input, nil
}
