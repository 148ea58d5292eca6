package functionfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/callfan/callfan/internal/retryafter"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
)

// endpoint runs one function as a POST per call.
type endpoint struct {
	url     string
	headers http.Header
	format  outputFormat
	client  *http.Client
}

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

func (l loader) http(at entry, where string) (*endpoint, error) {
	entries, err := l.mapping(at.value, where)
	if err != nil {
		return nil, err
	}
	h := &endpoint{headers: make(http.Header), format: formatText, client: newClient()}
	for _, e := range entries {
		switch e.name {
		case "url":
			h.url, err = l.url(e, where+": url")
		case "headers":
			err = l.headers(h.headers, e, where+": headers")
		case "output":
			h.format, err = l.format(e, where+": output")
		default:
			err = l.unknownKey(e, where, []string{"url", "headers", "output"})
		}
		if err != nil {
			return nil, err
		}
	}
	if h.url == "" {
		return nil, l.fault(at.key, "%s: url is missing; add the address that is posted to", where)
	}
	return h, nil
}

func (l loader) url(e entry, where string) (string, error) {
	text, err := l.text(e.value, where)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		return "", l.fault(e.value, "%s is %q; write a whole address such as http://127.0.0.1:9000/path", where, text)
	case u.User != nil:
		return "", l.fault(e.value, "%s holds a user or password; send it by a header from the environment, such as Authorization: \"Basic ${NAME}\"", where)
	}
	return u.String(), nil
}

func (l loader) headers(into http.Header, e entry, where string) error {
	entries, err := l.mapping(e.value, where)
	if err != nil {
		return err
	}
	for _, v := range entries {
		name := textproto.CanonicalMIMEHeaderKey(v.name)
		switch {
		case !headerName.MatchString(v.name):
			return l.fault(v.key, "%s: %q is not the name of a header", where, v.name)
		case name == "Content-Type", name == "Content-Length", name == "Host", name == "Idempotency-Key", name == "Traceparent", strings.HasPrefix(name, "X-Fn-"):
			return l.fault(v.key, "%s: %s is set for each call; remove it", where, v.name)
		}
		value, err := l.text(v.value, where+": "+v.name)
		if err != nil {
			return err
		}
		if value, err = l.expand(v.value, value, where+": "+v.name); err != nil {
			return err
		}
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return l.fault(v.value, "%s: %s has a control character in its value, perhaps a line break at the end of the variable", where, v.name)
		}
		into.Set(name, value)
	}
	return nil
}

func newClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 256
	return &http.Client{
		Transport: postOnce{transport},
		// Only a redirect that keeps the host and the POST carries the call's meaning
		// and the headers' secrets to the right place.
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			first := via[0].URL
			if len(via) >= 5 || next.Method != http.MethodPost || next.URL.Host != first.Host || next.URL.Scheme != first.Scheme {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
}

// run posts the arguments. A status of 2xx is a success with the body as its output;
// what else it may be is said by refused.
func (h *endpoint) run(ctx context.Context, c executor.Call) (executor.Output, error) {
	resp, err := h.post(ctx, h.header(c), c.Arguments)
	if err != nil {
		return executor.Output{}, unreachable(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return executor.Output{}, refused(resp)
	}
	if resp.StatusCode == http.StatusNoContent {
		return executor.Output{}, nil
	}
	return h.output(ctx, resp)
}

func (h *endpoint) post(ctx context.Context, header http.Header, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = header
	return h.client.Do(req)
}

// output reads the body of a success.
func (h *endpoint) output(ctx context.Context, resp *http.Response) (executor.Output, error) {
	if h.format == formatNone {
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return executor.Output{}, unreachable(ctx, err)
		}
		return executor.Output{}, nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxOutput+1))
	switch {
	case err != nil:
		return executor.Output{}, unreachable(ctx, err)
	case len(body) > maxOutput:
		return executor.Output{}, tooLarge()
	}
	return h.format.output(body)
}

// header tells the endpoint about the call. Ids and names are free text, so they
// are escaped as in a URL path.
func (h *endpoint) header(c executor.Call) http.Header {
	header := h.headers.Clone()
	header.Set("Content-Type", "application/json")
	header.Set("Idempotency-Key", c.IdempotencyKey)
	header.Set("X-Fn-Session-Id", url.PathEscape(c.Session))
	header.Set("X-Fn-Turn-Id", url.PathEscape(c.Turn))
	header.Set("X-Fn-Call-Id", url.PathEscape(c.Key.Call))
	header.Set("X-Fn-Function", url.PathEscape(c.Function))
	header.Set("X-Fn-Attempt", strconv.Itoa(c.Attempt))
	header.Set("X-Fn-Deadline", c.Deadline.UTC().Format(time.RFC3339Nano))
	if c.Uncertain {
		header.Set("X-Fn-Uncertain", "1")
	}
	if c.Traceparent != "" {
		header.Set("Traceparent", c.Traceparent)
	}
	return header
}

// unreachable is the failure of a request that got no whole answer. The address
// stays out of the text, which may reach the model.
func unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if in, ok := errors.AsType[*url.Error](err); ok {
		err = in.Err
	}
	return executor.Retry(fmt.Errorf("the function's endpoint gave no whole answer: %w", err), 0)
}

// answerText is the beginning of the body, or the status when there is none.
func answerText(resp *http.Response) string {
	kept := &head{n: maxError}
	_, _ = io.Copy(kept, io.LimitReader(resp.Body, maxError+1)) // a text that breaks off is still a text
	text := strings.TrimSpace(strings.ToValidUTF8(string(kept.kept), "\uFFFD"))
	if kept.over {
		text += "…"
	}
	return orElse(text, fmt.Sprintf("HTTP %d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
}

// causeHeader is the header by which an endpoint says that it failed, and for which
// cause, whatever its status is.
const causeHeader = "X-Fn-Cause"

var causeWord = regexp.MustCompile(`^[a-z_]{1,32}$`)

// refused makes the failure of an answer that is no success. 408, 425, 429 and 5xx are
// technical failures unless the endpoint names a cause: a proxy gives those, too.
func refused(resp *http.Response) error {
	text, cause := answerText(resp), resp.Header.Get(causeHeader)
	switch code := resp.StatusCode; {
	case code/100 == 3:
		return executor.Failure("redirect", fmt.Sprintf("the function's endpoint redirects elsewhere (HTTP %d), which is not followed", code))
	case cause == call.ReasonPanic:
		return executor.Failure(cause, "function crashed") // the body may be a stack trace
	case cause == call.ReasonInvalidArguments:
		return invalidArguments(text)
	case causeWord.MatchString(cause):
		return executor.Failure(cause, text)
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code >= 500:
		after, _ := retryafter.Parse(resp.Header.Get("Retry-After"), time.Now())
		return executor.Retry(errors.New(text), after)
	default:
		return errors.New(text)
	}
}
