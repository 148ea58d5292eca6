package mcptools

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
)

const (
	// maxOutput is the most of an output that is passed on, as for programs and HTTP
	// endpoints. The NATS server's own limit is checked when it is reported.
	maxOutput = 8 << 20
	// maxError is the most of an error text that the model gets.
	maxError = 4 << 10
)

// The causes of failures that are a server's own.
const (
	// causeRefused: the server refused the request itself, as for a tool that it does
	// not have.
	causeRefused = "mcp_refused"
	// causeInput: the tool asked for input of a person.
	causeInput = "mcp_input_required"
)

// outcome is what the result of a tool comes to.
func outcome(result *mcp.CallToolResult) (executor.Output, error) {
	if result.NeedsInput() {
		return executor.Output{}, executor.Failure(causeInput, "the tool asks for input of a person, which a function call cannot give")
	}
	parts := partsOf(result)
	if result.IsError {
		return executor.Output{}, errors.New(head(errorText(parts), maxError))
	}
	return output(parts)
}

// part is a text or an image by its data URL.
type part struct {
	text, image string
}

// partsOf are the parts that the Agents API takes: texts and images. Structured
// content stands in where the server sent no text of it, as it should have.
func partsOf(result *mcp.CallToolResult) []part {
	var parts []part
	texts := 0
	for _, c := range result.Content {
		p := partOf(c)
		if p.image == "" {
			texts++
		}
		parts = append(parts, p)
	}
	if texts == 0 {
		if raw := rawOf(result.Meta, result.StructuredContent); raw != nil {
			parts = append(parts, part{text: string(raw)})
		}
	}
	return parts
}

func partOf(content mcp.Content) part {
	switch c := content.(type) {
	case *mcp.TextContent:
		return part{text: c.Text}
	case *mcp.ImageContent:
		return part{image: dataURL(c.MIMEType, c.Data)}
	case *mcp.EmbeddedResource:
		return resource(c.Resource)
	case *mcp.ResourceLink:
		return part{text: strings.TrimSpace("resource " + c.URI + " " + c.Name)}
	case *mcp.AudioContent:
		return part{text: fmt.Sprintf("(audio of the type %s, %d bytes, which cannot be passed on)", c.MIMEType, len(c.Data))}
	default:
		return part{text: "(content of a type that cannot be passed on)"}
	}
}

func resource(r *mcp.ResourceContents) part {
	switch {
	case r == nil:
		return part{text: "(a resource without content)"}
	case r.Blob == nil:
		return part{text: r.Text}
	case strings.HasPrefix(r.MIMEType, "image/"):
		return part{image: dataURL(r.MIMEType, r.Blob)}
	default:
		return part{text: fmt.Sprintf("(resource %s of the type %s, %d bytes, which cannot be passed on)", r.URI, r.MIMEType, len(r.Blob))}
	}
}

func dataURL(kind string, data []byte) string {
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(data)
}

// output is one text as a text, and anything else as content parts.
func output(parts []part) (executor.Output, error) {
	size := 0
	content := make(executor.Content, 0, len(parts))
	for _, p := range parts {
		size += len(p.text) + len(p.image)
		if p.image != "" {
			content = append(content, executor.ImagePart(p.image))
		} else {
			content = append(content, executor.TextPart(p.text))
		}
	}
	switch {
	case size > maxOutput:
		return executor.Output{}, executor.Failure(call.ReasonTooLarge, fmt.Sprintf("result too large (more than %d bytes)", maxOutput))
	case len(parts) == 0:
		return executor.Output{}, nil
	case len(parts) == 1 && parts[0].image == "":
		return executor.Text(parts[0].text), nil
	}
	return content.Output()
}

// errorText is all the text of a failed result.
func errorText(parts []part) string {
	var texts []string
	for _, p := range parts {
		if text := strings.TrimSpace(p.text); text != "" {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return "the tool failed without saying why"
	}
	return strings.Join(texts, "\n")
}

// head is the first n bytes of a text, at most.
func head(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}
