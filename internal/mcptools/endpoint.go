package mcptools

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/http/httptrace"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The headers of newer versions of MCP that repeat what the body says.
const (
	headerMethod = "Mcp-Method"
	headerName   = "Mcp-Name"
)

// maxToken bounds the file of a bearer token, in bytes.
const maxToken = 64 << 10

// transport makes the endpoint a transport of the SDK.
func (e *Endpoint) transport() (t mcp.Transport, closeIdle func()) {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = 256
	client := &http.Client{
		Transport: &carrier{base: base, endpoint: e},
		// Only a redirect that keeps the host and the method carries the request's
		// meaning and the headers' secrets to the right place.
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			first := via[0]
			if len(via) >= 5 || next.Method != first.Method || next.URL.Host != first.URL.Host || next.URL.Scheme != first.URL.Scheme {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
	return &mcp.StreamableClientTransport{Endpoint: e.URL, HTTPClient: client, MaxEventSize: 2 * maxMessage}, base.CloseIdleConnections
}

// carrier carries the requests of the SDK: it adds what authorizes them, bounds what
// comes back, and notes for an exchange how far its request came.
type carrier struct {
	base     http.RoundTripper
	endpoint *Endpoint
}

// exchange is how far the request of one call came.
type exchange struct {
	tool       string
	sent       atomic.Bool // a part of it may have reached the server
	mu         sync.Mutex
	status     int
	retryAfter string
}

type exchangeKey struct{}

func (x *exchange) answered(resp *http.Response) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.status == 0 {
		x.status, x.retryAfter = resp.StatusCode, resp.Header.Get("Retry-After")
	}
}

func (x *exchange) answer() (status int, retryAfter string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.status, x.retryAfter
}

// RoundTrip sends the request once.
func (c *carrier) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	if x != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { x.sent.Store(true) }})
	}
	req = req.Clone(ctx)
	req.GetBody = nil // whether a call is run again is for the function's policy to say
	if x != nil && req.Header.Get(headerMethod) == "tools/call" && req.Header.Get(headerName) == "" {
		// The SDK leaves it out when the arguments are beyond what it decodes, such as 1e400.
		req.Header.Set(headerName, x.tool)
	}
	maps.Copy(req.Header, c.endpoint.Header)
	if c.endpoint.BearerFile != "" {
		token, err := readToken(c.endpoint.BearerFile)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if x != nil && req.Method == http.MethodPost {
		x.answered(resp)
	}
	return kept(resp)
}

// CheckBearer says why the file of the bearer token cannot be used now.
func (e *Endpoint) CheckBearer() error {
	_, err := readToken(e.BearerFile)
	return err
}

func readToken(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("the bearer token: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxToken))
	if err != nil {
		return "", fmt.Errorf("the bearer token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", fmt.Errorf("the bearer token: %s must hold one line of printable characters without spaces", path)
	}
	return token, nil
}

// kept bounds the body of an answer and keeps the raw bytes in its messages.
func kept(resp *http.Response) (*http.Response, error) {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case "text/event-stream":
		resp.Body = &events{from: resp.Body, in: bufio.NewReaderSize(resp.Body, 64<<10)}
	default:
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage+1))
		err = errors.Join(err, resp.Body.Close())
		if err == nil && len(body) > maxMessage {
			err = errMessageTooLarge
		}
		if err != nil {
			return nil, err
		}
		if kind == "application/json" {
			body = keepRaw(body)
		}
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		resp.Header.Del("Content-Length")
	}
	return resp, nil
}

// events is a stream of server-sent events with the raw bytes kept in those that
// carry a message on one line, as they all do in practice.
type events struct {
	from    io.ReadCloser
	in      *bufio.Reader
	pending []byte
}

var dataField = []byte("data:")

func (e *events) Read(p []byte) (int, error) {
	if len(e.pending) == 0 {
		line, err := e.line()
		if len(line) == 0 && err != nil {
			return 0, err
		}
		if data, ok := bytes.CutPrefix(line, dataField); ok {
			line = append(append([]byte("data: "), keepRaw(bytes.TrimSpace(data))...), '\n')
		}
		e.pending = line
	}
	n := copy(p, e.pending)
	e.pending = e.pending[n:]
	return n, nil
}

func (e *events) line() ([]byte, error) {
	var line []byte
	for {
		part, err := e.in.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
		if len(line) > maxMessage {
			return nil, errMessageTooLarge
		}
	}
}

func (e *events) Close() error { return e.from.Close() }

// withExchange lets the request of one call of a tool be followed.
func withExchange(ctx context.Context, tool string) (context.Context, *exchange) {
	x := &exchange{tool: tool}
	return context.WithValue(ctx, exchangeKey{}, x), x
}
