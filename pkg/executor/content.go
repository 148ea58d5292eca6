package executor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Content is an output of several parts, in the order the model sees them. The
// Agents API takes texts and images.
type Content []Part

// Part is one part of a Content; make it by TextPart or ImagePart.
type Part struct {
	text, image string
	isImage     bool
}

// TextPart is a part of that text, made valid as Text does.
func TextPart(text string) Part { return Part{text: text} }

// ImagePart is an image by its URL, which may be a data URL.
func ImagePart(url string) Part { return Part{image: url, isImage: true} }

// ErrInvalidContent is wrapped by the errors of Content.Output and ParseContent.
var ErrInvalidContent = errors.New("invalid content array")

// Output is the content as an output. An empty content and an image without a URL
// are refused, as the API refuses them.
func (c Content) Output() (Output, error) {
	if len(c) == 0 {
		return Output{}, fmt.Errorf("%w: it has no parts", ErrInvalidContent)
	}
	raw := []byte{'['}
	for i, p := range c {
		if i > 0 {
			raw = append(raw, ',')
		}
		switch {
		case !p.isImage:
			raw = append(appendText(append(raw, `{"type":"input_text","text":`...), p.text), '}')
		case p.image == "":
			return Output{}, fmt.Errorf("%w: part %d is an image without a URL", ErrInvalidContent, i)
		default:
			raw = append(appendText(append(raw, `{"type":"input_image","image_url":`...), p.image), '}')
		}
	}
	return Output{raw: append(raw, ']')}, nil
}

// ParseContent reads a content array as the API takes it:
//
//	[{"type":"input_text","text":"…"},{"type":"input_image","image_url":"https://…"}]
//
// Other types and unknown members are refused, with the number of the part, from 0.
func ParseContent(raw []byte) (Content, error) {
	var parts []json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil || parts == nil {
		return nil, fmt.Errorf("%w: it is not a JSON array", ErrInvalidContent)
	}
	content := make(Content, 0, len(parts))
	for i, raw := range parts {
		p, err := parsePart(raw)
		if err != nil {
			return nil, fmt.Errorf("%w: part %d: %w", ErrInvalidContent, i, err)
		}
		content = append(content, p)
	}
	if len(content) == 0 {
		return nil, fmt.Errorf("%w: it has no parts", ErrInvalidContent)
	}
	return content, nil
}

func parsePart(raw json.RawMessage) (Part, error) {
	var part struct {
		Type  string  `json:"type"`
		Text  *string `json:"text"`
		Image *string `json:"image_url"`
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&part); err != nil && !errors.Is(err, io.EOF) {
		return Part{}, err
	}
	switch {
	case part.Type == "input_text" && part.Text != nil && part.Image == nil:
		return TextPart(*part.Text), nil
	case part.Type == "input_image" && part.Image != nil && *part.Image != "" && part.Text == nil:
		return ImagePart(*part.Image), nil
	case part.Type == "input_text":
		return Part{}, errors.New("input_text takes exactly the member text")
	case part.Type == "input_image":
		return Part{}, errors.New("input_image takes exactly the member image_url, not empty")
	default:
		return Part{}, fmt.Errorf("the type is %q; use input_text or input_image", part.Type)
	}
}
