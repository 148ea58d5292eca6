package mcptools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callfan/callfan/internal/retryafter"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
)

// The keys of _meta by which a server learns about the call.
const (
	metaIdempotencyKey = "io.github.callfan/idempotencyKey"
	metaAttempt        = "io.github.callfan/attempt"
	metaUncertain      = "io.github.callfan/uncertain"
	// metaTraceparent is MCP's own name.
	metaTraceparent = "traceparent"
)

// connectWait is how long a call waits for a server that is not connected, before it
// goes back to the dispatcher.
const connectWait = 5 * time.Second

// handler runs calls of one tool.
func (c *Client) handler(name string) executor.Handler {
	own := newSlots(c.server.Overrides[name].Concurrency)
	return func(ctx context.Context, in executor.Call) (executor.Output, error) {
		if !json.Valid(in.Arguments) && len(in.Arguments) > 0 {
			return executor.Output{}, executor.Failure(call.ReasonInvalidArguments, "the arguments are not valid JSON")
		}
		if err := own.acquire(ctx); err != nil {
			return executor.Output{}, err
		}
		defer own.release()
		if err := c.slots.acquire(ctx); err != nil {
			return executor.Output{}, err
		}
		defer c.slots.release()
		return c.call(ctx, name, in)
	}
}

// call calls the tool, and once more when it turns out that the session had ended
// before the server saw the call.
func (c *Client) call(ctx context.Context, name string, in executor.Call) (executor.Output, error) {
	var s *session
	for again := false; ; again = true {
		waiting, cancel := context.WithTimeout(ctx, connectWait)
		next, err := c.await(waiting, s)
		cancel()
		switch {
		case ctx.Err() != nil:
			return executor.Output{}, context.Cause(ctx)
		case err != nil: // why is for operators: it may name an address
			return executor.Output{}, executor.Retry(fmt.Errorf("MCP server %q is not connected", c.server.Name), time.Second)
		}
		s = next
		result, l := c.request(ctx, s, name, in)
		switch {
		case l == nil:
			return outcome(result)
		case l.stale && !again:
			continue
		default:
			return executor.Output{}, l.err
		}
	}
}

// request makes one request of the session.
func (c *Client) request(ctx context.Context, s *session, name string, in executor.Call) (*mcp.CallToolResult, *loss) {
	params := &mcp.CallToolParams{Name: name, Arguments: in.Arguments, Meta: mcp.Meta{
		metaIdempotencyKey: in.IdempotencyKey, metaAttempt: in.Attempt,
	}}
	if len(in.Arguments) == 0 {
		params.Arguments = json.RawMessage(`{}`)
	}
	if in.Uncertain {
		params.Meta[metaUncertain] = true
	}
	if in.Traceparent != "" {
		params.Meta[metaTraceparent] = in.Traceparent
	}
	token, forget := c.running.begin(in)
	defer forget()
	params.SetProgressToken(token)
	ctx, x := withExchange(ctx, name)
	result, err := s.CallTool(ctx, params)
	if err != nil {
		return nil, c.lost(ctx, s, x, err)
	}
	return result, nil
}

// loss is a request that got no result.
type loss struct {
	err error // for the executor
	// stale: the server did not see the call, since the session had ended.
	stale bool
}

// transportError is the code that the SDK gives to errors of its own transport.
const transportError = -32005

// lost tells what became of a request that got no result.
func (c *Client) lost(ctx context.Context, s *session, x *exchange, err error) *loss {
	status, wish := x.answer()
	after, _ := retryafter.Parse(wish, time.Now())
	rpc, answered := errors.AsType[*jsonrpc.Error](err)
	answered = answered && !errors.Is(err, mcp.ErrConnectionClosed) && (s.process != nil || rpc.Code != transportError)
	says := func(text string) error { return fmt.Errorf("MCP server %q %s", c.server.Name, text) }
	switch {
	case ctx.Err() != nil:
		return &loss{err: context.Cause(ctx)}
	case answered:
		return &loss{err: refusal(rpc, after)}
	case errors.Is(err, mcp.ErrConnectionClosed):
		tell(s.broken) // the SDK may hold on to it, for the sake of a stream that goes on
		return &loss{err: executor.Retry(says("is not connected"), time.Second), stale: true}
	case errors.Is(err, mcp.ErrSessionMissing):
		return &loss{err: executor.Retry(says("has forgotten the session"), 0), stale: true}
	case s.process != nil:
		return &loss{err: executor.Uncertain(says("ended before it answered"))}
	case !x.sent.Load():
		return &loss{err: executor.Retry(says("could not be reached"), 0)}
	case refusedByStatus(status):
		return &loss{err: executor.Retry(says("answered HTTP "+strconv.Itoa(status)), after)}
	case status >= http.StatusInternalServerError:
		return &loss{err: executor.Uncertain(says("answered HTTP " + strconv.Itoa(status)))}
	default:
		return &loss{err: executor.Uncertain(says("gave no whole answer"))}
	}
}

// refusedByStatus says whether an answer with this status means that the tool was not
// run.
func refusedByStatus(status int) bool {
	return status == http.StatusServiceUnavailable || status/100 == 3 || status/100 == 4
}

// refusal is a JSON-RPC error of the server. The errors of JSON-RPC itself are about
// the request and would come again; any other is a technical failure.
func refusal(rpc *jsonrpc.Error, after time.Duration) error {
	text := head(rpc.Message, maxError)
	switch rpc.Code {
	case jsonrpc.CodeInvalidParams, jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidRequest, jsonrpc.CodeParseError,
		mcp.CodeHeaderMismatch:
		return executor.Failure(causeRefused, text)
	case mcp.CodeURLElicitationRequired:
		return executor.Failure(causeInput, text)
	default:
		return executor.Retry(errors.New(text), after)
	}
}
