package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/callfan/callfan/pkg/call"
)

// Register declares the executor's functions, one request each, and gives the
// binding of its pool. While no dispatcher answers it asks again until ctx ends,
// and logs that once. A refusal is a *RegisterError; a subject that the server
// denies is a *PermissionError.
func (c *Conn) Register(ctx context.Context, r Registration) (Binding, error) {
	if len(r.Functions) == 0 {
		return Binding{}, fmt.Errorf("%w: there is none to register", ErrInvalidFunction)
	}
	if !validPool.MatchString(r.Pool) {
		return Binding{}, &RegisterError{Function: r.Functions[0].Name, Code: CodeInvalidPool, Message: poolRule(r.Pool)}
	}
	names := make([]string, len(r.Functions))
	for i, f := range r.Functions {
		if err := f.Validate(); err != nil {
			return Binding{}, err
		}
		names[i] = f.Name
	}
	if r.Host == "" {
		r.Host, _ = os.Hostname()
	}
	waiting := false
	var binding Binding
	for _, f := range r.Functions {
		body, err := r.request(f, names)
		if err != nil {
			return Binding{}, err
		}
		if binding, err = c.registerOne(ctx, f, body, &waiting); err != nil {
			return Binding{}, err
		}
	}
	if waiting {
		c.log.Info("registered", "pool", r.Pool, "functions", len(r.Functions))
	}
	return binding, nil
}

// request is the payload that declares f, one of the executor's functions of those names.
func (r Registration) request(f call.Function, names []string) ([]byte, error) {
	body := appendString([]byte(`{"protocol":1,"pool":`), r.Pool)
	body, err := f.AppendJSON(append(body, `,"function":`...))
	if err != nil {
		return nil, err
	}
	rest, err := json.Marshal(struct {
		Functions []string     `json:"functions"`
		Executor  executorInfo `json:"executor"`
	}{names, executorInfo{ID: r.ID, Language: r.Language, Version: r.Version, Host: r.Host}})
	if err != nil {
		return nil, fmt.Errorf("%w %q: %w", ErrInvalidFunction, f.Name, err)
	}
	return append(append(body, ','), rest[1:]...), nil
}

func poolRule(pool string) string {
	return fmt.Sprintf("the pool name %q is not 1 to 64 of A-Z a-z 0-9 _ -; rename the pool", pool)
}

// registerOne asks until somebody decides. waiting is set once it had to wait.
func (c *Conn) registerOne(ctx context.Context, f call.Function, body []byte, waiting *bool) (Binding, error) {
	subject := c.names.register(call.Token(f.Name))
	waits := newBackOff(5 * time.Second)
	for {
		if err := c.awaitConnected(ctx); err != nil {
			return Binding{}, fmt.Errorf("register %q: %w", f.Name, err)
		}
		attempt, cancel := context.WithTimeout(ctx, operationTimeout)
		reply, err := c.request(attempt, subject, body)
		cancel()
		var binding Binding
		if err == nil {
			binding, err = parseBinding(f.Name, reply)
		}
		var refused *RegisterError
		switch {
		case err == nil:
			return binding, nil
		case errors.Is(err, ErrPermission), errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrMaxPayload):
			return Binding{}, fmt.Errorf("register %q: %w", f.Name, err)
		case errors.As(err, &refused) && refused.Code != CodeUnavailable:
			return Binding{}, err
		case !*waiting:
			*waiting = true
			c.log.Warn("no dispatcher takes the registration; asking until one does", "function", f.Name, "subject", subject, "error", err)
		}
		if sleepErr := sleep(ctx, waits.NextBackOff()); sleepErr != nil {
			return Binding{}, fmt.Errorf("register %q: %w: %w", f.Name, sleepErr, errors.Join(ErrNoDispatcher, err))
		}
	}
}

func parseBinding(function string, reply []byte) (Binding, error) {
	var answer registerReply
	if err := json.Unmarshal(reply, &answer); err != nil {
		return Binding{}, fmt.Errorf("unreadable answer: %w", err)
	}
	switch {
	case answer.Error != nil:
		return Binding{}, &RegisterError{Function: function, Code: answer.Error.Code, Message: answer.Error.Message}
	case !answer.OK || answer.Binding == nil || answer.Binding.Consumer == "" || answer.Binding.Stream == "":
		return Binding{}, errors.New("the answer has no binding")
	}
	return answer.Binding.binding(), nil
}
