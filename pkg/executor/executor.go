package executor

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/callfan/callfan/pkg/call"
)

// Executor runs functions. Make it by New.
type Executor struct {
	cfg Config

	mu        sync.Mutex
	functions map[string]*function
	order     []string
	running   bool
	link      link // while serving
}

// function is a function with its handler inside all middleware.
type function struct {
	call.Function
	policy call.Policy // with defaults
	run    Handler
	verify VerifyHandler // nil without one
}

// New makes an executor from cfg. It connects to nothing before Run. Its errors
// wrap ErrInvalidConfig.
func New(cfg Config) (*Executor, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Executor{cfg: cfg.withDefaults(), functions: make(map[string]*function)}, nil
}

// HandleRaw adds a function whose handler gets the arguments as bytes and makes its
// own output. It must be called before Run. Its errors wrap call.ErrInvalidFunction,
// ErrInvalidOption or ErrDuplicateFunction, or are ErrAlreadyRunning; the function
// was not added then.
func HandleRaw(ex *Executor, name string, handler Handler, opts ...Option) error {
	decl := declaration{Function: call.Function{Name: name}}
	if err := apply(&decl, opts); err != nil {
		return err
	}
	return ex.add(decl, handler)
}

// Functions are the declarations of all handled functions, in the order they were added.
func (ex *Executor) Functions() []call.Function {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	decls := make([]call.Function, 0, len(ex.order))
	for _, name := range ex.order {
		decls = append(decls, ex.functions[name].Function)
	}
	return decls
}

func apply(decl *declaration, opts []Option) error {
	var errs []error
	for _, opt := range opts {
		if err := opt(decl); err != nil {
			errs = append(errs, fmt.Errorf("function %q: %w", decl.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (ex *Executor) add(decl declaration, handler Handler) error {
	if handler == nil {
		return fmt.Errorf("function %q: %w: the handler is nil", decl.Name, ErrInvalidOption)
	}
	if err := decl.Validate(); err != nil {
		return err
	}
	for i, wrap := range slices.Backward(ex.cfg.Middleware) {
		if handler = wrap(handler); handler == nil {
			return fmt.Errorf("function %q: %w: Middleware[%d] returned a nil handler", decl.Name, ErrInvalidOption, i)
		}
	}
	ex.mu.Lock()
	defer ex.mu.Unlock()
	if ex.running {
		return ErrAlreadyRunning
	}
	if _, taken := ex.functions[decl.Name]; taken {
		return fmt.Errorf("function %q: %w", decl.Name, ErrDuplicateFunction)
	}
	ex.functions[decl.Name] = &function{Function: decl.Function, policy: decl.WithDefaults(), run: handler, verify: decl.verify}
	ex.order = append(ex.order, decl.Name)
	return nil
}

// function is the function of that name, nil when it is not handled.
func (ex *Executor) function(name string) *function {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	return ex.functions[name]
}
