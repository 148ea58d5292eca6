package executor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Content is an output of several parts, in the order the model sees them. The
// Agents API takes texts and images, the Responses API files as well.
type Content []Part

// Part is one part of a Content; make it by TextPart, ImagePart or FilePart.
type Part struct {
	kind  partKind
	value string
}

type partKind int

const (
	partText partKind = iota
	partImage
	partFile
)

// TextPart is a part of that text, made valid as Text does.
func TextPart(text string) Part { return Part{value: text} }

// ImagePart is an image by its URL, which may be a data URL.
func ImagePart(url string) Part { return Part{partImage, url} }

// FilePart is a file by the id that the API's files have. Only the Responses API takes
// files: where a session of the Agents API asked, the model gets an error in place of the
// output.
func FilePart(id string) Part { return Part{partFile, id} }

// ErrInvalidContent is wrapped by the errors of Content.Output and ParseContent.
var ErrInvalidContent = errors.New("invalid content array")

// Output is the content as an output. An empty content, an image without a
// URL and a file without an id are refused, as the API refuses them.
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
		case p.kind == partText:
			raw = append(raw, `{"type":"input_text","text":`...)
		case p.kind == partImage && p.value != "":
			raw = append(raw, `{"type":"input_image","image_url":`...)
		case p.kind == partImage:
			return Output{}, fmt.Errorf("%w: part %d is an image without a URL", ErrInvalidContent, i)
		case p.value != "":
			raw = append(raw, `{"type":"input_file","file_id":`...)
		default:
			return Output{}, fmt.Errorf("%w: part %d is a file without an id", ErrInvalidContent, i)
		}
		raw = append(appendText(raw, p.value), '}')
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
		File  *string `json:"file_id"`
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&part); err != nil && !errors.Is(err, io.EOF) {
		return Part{}, err
	}
	switch {
	case part.Type == "input_text" && part.Text != nil && part.Image == nil && part.File == nil:
		return TextPart(*part.Text), nil
	case part.Type == "input_image" && part.Image != nil && *part.Image != "" && part.Text == nil && part.File == nil:
		return ImagePart(*part.Image), nil
	case part.Type == "input_file" && part.File != nil && *part.File != "" && part.Text == nil && part.Image == nil:
		return FilePart(*part.File), nil
	case part.Type == "input_text":
		return Part{}, errors.New("input_text takes exactly the member text")
	case part.Type == "input_image":
		return Part{}, errors.New("input_image takes exactly the member image_url, not empty")
	case part.Type == "input_file":
		return Part{}, errors.New("input_file takes exactly the member file_id, not empty")
	default:
		return Part{}, fmt.Errorf("the type is %q; use input_text, input_image or input_file", part.Type)
	}
}
