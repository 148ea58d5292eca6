package mcptools

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func TestContentsBecomeTextsAndImages(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ result, want string }{
		"a text":                {`{"content":[{"type":"text","text":"a\u0000ä"}]}`, `"a\u0000ä"`},
		"an empty text":         {`{"content":[{"type":"text","text":""}]}`, `""`},
		"text and structure":    {`{"content":[{"type":"text","text":"a"}],"structuredContent":{"a":1}}`, `"a"`},
		"structure":             {`{"content":[],"structuredContent":[1]}`, `"[1]"`},
		"structure: null":       {`{"content":[],"structuredContent":null}`, `null`},
		"an image":              {`{"content":[{"type":"image","mimeType":"image/png","data":"AQID"}]}`, `[{"type":"input_image","image_url":"data:image/png;base64,AQID"}]`},
		"an image of structure": {`{"content":[{"type":"image","mimeType":"image/png","data":"AQID"}],"structuredContent":{"a":1}}`, `[{"type":"input_image","image_url":"data:image/png;base64,AQID"},{"type":"input_text","text":"{\"a\":1}"}]`},
		"texts":                 {`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, `[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]`},
		"a link":                {`{"content":[{"type":"resource_link","uri":"file:///a","name":"the a"}]}`, `"resource file:///a the a"`},
		"a text resource":       {`{"content":[{"type":"resource","resource":{"uri":"file:///a","text":"inside"}}]}`, `"inside"`},
		"an image resource":     {`{"content":[{"type":"resource","resource":{"uri":"file:///a","mimeType":"image/gif","blob":"AQID"}}]}`, `[{"type":"input_image","image_url":"data:image/gif;base64,AQID"}]`},
		"a file":                {`{"content":[{"type":"resource","resource":{"uri":"file:///a","mimeType":"application/pdf","blob":"AQID"}}]}`, `"(resource file:///a of the type application/pdf, 3 bytes, which cannot be passed on)"`},
		"audio":                 {`{"content":[{"type":"audio","mimeType":"audio/wav","data":"AQID"}]}`, `"(audio of the type audio/wav, 3 bytes, which cannot be passed on)"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var result mcp.CallToolResult
			require.NoError(t, json.Unmarshal([]byte(tt.result), &result))
			out, err := outcome(&result)
			require.NoError(t, err)
			got, err := out.MarshalJSON()
			require.NoError(t, err)
			require.Equal(t, tt.want, string(got))
		})
	}
	_, err := outcome(&mcp.CallToolResult{IsError: true})
	require.EqualError(t, err, "the tool failed without saying why")
	_, err = outcome(&mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("x", maxOutput+1)}}})
	require.ErrorContains(t, err, "result too large")
	long := &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("ä", maxError)}}}
	_, err = outcome(long)
	require.EqualError(t, err, strings.Repeat("ä", maxError/2)+"…")
}

func TestLinesAreBoundedAndStrayOnesLeftOut(t *testing.T) {
	t.Parallel()
	stray := 0
	l := newLines(io.NopCloser(strings.NewReader("hello\n\n{\"a\":1}\r\nwhat?\n[]\n{\"unfinished")), func() { stray++ })
	got, err := io.ReadAll(l)
	require.NoError(t, err)
	require.Equal(t, "{\"a\":1}\n[]\n", string(got))
	require.Equal(t, 1, stray)
	_, err = io.ReadAll(newLines(io.NopCloser(strings.NewReader("{"+strings.Repeat(" ", maxMessage+1)+"}\n")), nil))
	require.ErrorIs(t, err, errMessageTooLarge)
}
