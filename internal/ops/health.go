package ops

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
)

// Readiness is the answer of /readyz.
type Readiness struct {
	Ready bool `json:"ready"`
	// Checks says "ok" or what is missing, by the name of the part.
	Checks map[string]string `json:"checks"`
}

var errStopping = errors.New("the dispatcher is stopping")

func (s *Server) live(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, map[string]bool{"alive": true})
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	answer := s.readiness(r.Context())
	status := http.StatusOK
	if !answer.Ready {
		status = http.StatusServiceUnavailable
	}
	write(w, status, answer)
}

func (s *Server) readiness(ctx context.Context) Readiness {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CheckTimeout)
	defer cancel()
	found := make([]error, len(s.cfg.Checks))
	var checks sync.WaitGroup
	for i, check := range s.cfg.Checks {
		checks.Go(func() { found[i] = run(ctx, check) })
	}
	checks.Wait()
	answer := Readiness{Ready: true, Checks: map[string]string{}}
	note := func(name string, err error) {
		if err != nil {
			answer.Ready = false
			answer.Checks[name] = err.Error()
			return
		}
		answer.Checks[name] = "ok"
	}
	for i, check := range s.cfg.Checks {
		note(check.Name, found[i])
	}
	if s.stopping.Load() {
		note("process", errStopping)
	}
	return answer
}

// run does not wait for a check that ignores its context.
func run(ctx context.Context, check Check) error {
	result := make(chan error, 1)
	go func() { result <- check.Run(ctx) }()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return fmt.Errorf("no answer in time: %w", ctx.Err())
	}
}
