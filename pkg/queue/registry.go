package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/callfan/callfan/pkg/call"
)

// Registry knows the functions that executors have registered and keeps the pools'
// consumers in step with them. Every dispatcher has one; they share the definitions
// through the KV bucket, where each change is a compare-and-set. A function shows
// only once its pool's consumer takes its calls, so that no call is published that
// nobody would be given.
type Registry struct {
	c  *Conn
	kv jetstream.KeyValue
	// accept judges definitions; nil takes all valid ones.
	accept func(call.Function) error
	// told is told of repairs; it may be nil.
	told     func(kind string, n int)
	presence *presence

	// deciding lets one registration at a time change anything.
	deciding sync.Mutex
	// checked is when a pool's consumer was last seen to be right.
	checked map[string]time.Time
	// passed are the subjects that may hold calls which their consumer has passed,
	// with the last sequence that can be such a call.
	passed map[string]uint64
	// listening is when somebody was found to listen for cancellations of a function.
	listening map[string]time.Time
	// suspects are the calls that the last sweep found stuck, by sequence, and since when.
	suspects map[uint64]time.Time

	mu      sync.RWMutex
	records map[string]record // by token
	changed chan struct{}
}

// Registered is a function with who serves it.
type Registered struct {
	Function call.Function
	Pool     string
	// Language and Version are those of the executor that last changed the definition.
	Language, Version string
	// Changed is when that was.
	Changed time.Time
	// Executors are those that were heard registering it within three RegistryChecks,
	// by id; 1000 at most.
	Executors []Executor
}

// RegistryOption changes how registrations are answered.
type RegistryOption func(*Registry)

// WithAcceptance has accept judge every definition that executors declare, after it is
// known to be valid in itself. Its error refuses the registration with
// CodeInvalidFunction and should say how to mend it. Definitions that were registered
// before stay.
func WithAcceptance(accept func(call.Function) error) RegistryOption {
	return func(r *Registry) { r.accept = accept }
}

// ServeRegistry answers registrations until ctx ends. It returns once the known
// definitions are loaded and it listens; while JetStream does not answer it waits.
// Provision must have run.
func (c *Conn) ServeRegistry(ctx context.Context, opts ...RegistryOption) (*Registry, error) {
	r := &Registry{
		c: c, records: map[string]record{}, changed: make(chan struct{}), presence: newPresence(c.cfg.RegistryCheck),
		checked: map[string]time.Time{}, passed: map[string]uint64{}, listening: map[string]time.Time{},
	}
	for _, opt := range opts {
		opt(r)
	}
	err := c.await(ctx, "load the registry", func(attempt context.Context) (err error) {
		if r.kv, err = c.js.KeyValue(attempt, c.names.bucket()); err != nil {
			return err
		}
		return r.load(attempt)
	})
	if err != nil {
		return nil, err
	}
	if err := r.presence.listen(ctx, c); err != nil {
		return nil, err
	}
	if err := c.serve(ctx, c.names.register("*"), r.answer); err != nil {
		return nil, err
	}
	go r.watch(ctx)
	go r.checkPools(ctx)
	return r, nil
}

// Function is the definition of a registered function.
func (r *Registry) Function(name string) (call.Function, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	rec, ok := r.records[call.Token(name)]
	if !ok || !rec.Bound {
		return call.Function{}, false
	}
	return rec.Function, true
}

// Functions lists what is registered, by name.
func (r *Registry) Functions() []Registered {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var list []Registered
	for token, rec := range r.records {
		if rec.Bound {
			list = append(list, Registered{
				Function: rec.Function, Pool: rec.Pool, Language: rec.Language, Version: rec.Version, Changed: rec.At,
				Executors: r.presence.executors(token, rec.fingerprint),
			})
		}
	}
	slices.SortFunc(list, func(a, b Registered) int { return cmp.Compare(a.Function.Name, b.Function.Name) })
	return list
}

// Changed is closed at the next change of any definition.
func (r *Registry) Changed() <-chan struct{} {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.changed
}

// remember takes a record from the bucket unless a newer one is known.
func (r *Registry) remember(token string, rec record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if have, ok := r.records[token]; ok && have.revision >= rec.revision {
		return
	}
	if rec.deleted {
		delete(r.records, token)
	} else {
		r.records[token] = rec
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *Registry) known(token string) (record, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	rec, ok := r.records[token]
	return rec, ok
}

// pools lists the pools of the known functions.
func (r *Registry) pools() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	pools := map[string]bool{}
	for _, rec := range r.records {
		pools[rec.Pool] = true
	}
	return slices.Sorted(maps.Keys(pools))
}

// answer handles one registration request.
func (r *Registry) answer(ctx context.Context, m *nats.Msg) []byte {
	reply := registerReply{OK: true}
	binding, err := r.register(ctx, lastToken(m.Subject), m.Data)
	if err != nil {
		var refused *RegisterError
		if !errors.As(err, &refused) {
			refused = &RegisterError{Code: CodeUnavailable, Message: err.Error()}
		}
		r.c.log.Warn("registration refused", "function", refused.Function, "code", refused.Code, "reason", refused.Message)
		reply = registerReply{Error: &registerFault{Code: refused.Code, Message: refused.Message}}
	} else {
		reply.Binding = binding.wire()
	}
	body, err := json.Marshal(reply)
	if err != nil { // strings and numbers always marshal
		return []byte(`{"ok":false,"error":{"code":"unavailable","message":"internal error"}}`)
	}
	return body
}

func (r *Registry) register(ctx context.Context, token string, body []byte) (Binding, error) {
	var req registerRequest
	var f call.Function
	refuse := func(code, format string, args ...any) error {
		return &RegisterError{Function: f.Name, Code: code, Message: fmt.Sprintf(format, args...)}
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return Binding{}, refuse(CodeInvalidRequest, "the request is not readable: %v", err)
	}
	if req.Protocol != 1 {
		return Binding{}, refuse(CodeProtocol, "the executor speaks protocol %d and this dispatcher 1; update the older of the two", req.Protocol)
	}
	if err := json.Unmarshal(req.Function, &f); err != nil {
		return Binding{}, refuse(CodeInvalidFunction, "the definition is not readable: %v", err)
	}
	if err := f.Validate(); err != nil {
		return Binding{}, refuse(CodeInvalidFunction, "%v", err)
	}
	if r.accept != nil {
		if err := r.accept(f); err != nil {
			return Binding{}, refuse(CodeInvalidFunction, "function %q: %v", f.Name, err)
		}
	}
	if !validPool.MatchString(req.Pool) {
		return Binding{}, refuse(CodeInvalidPool, "%s", poolRule(req.Pool))
	}
	if call.Token(f.Name) != token {
		return Binding{}, refuse(CodeSubjectMismatch, "function %q was declared on the subject of another function; use the token of its own name", f.Name)
	}
	r.presence.note(token, req)
	claim := record{Pool: req.Pool, Function: f, Language: req.Executor.Language, Version: req.Executor.Version, fingerprint: f.Fingerprint()}
	if err := r.decide(ctx, token, claim, req.Executor, req.Functions); err != nil {
		return Binding{}, err
	}
	return r.c.binding(req.Pool), nil
}

func (c *Conn) binding(pool string) Binding {
	return Binding{
		Stream: c.names.calls(), Consumer: poolDurable(pool), AckWait: c.cfg.AckWait,
		MaxPayload: c.nc.MaxPayload(), ResultPrefix: c.names.prefix + ".result.", Refresh: c.cfg.RegistryCheck,
	}
}
