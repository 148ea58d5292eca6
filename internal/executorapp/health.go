package executorapp

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// readyTimeout bounds one check of readiness.
const readyTimeout = 3 * time.Second

// newHealth serves /healthz, /readyz and /metrics. It is not ready once running ended.
func newHealth(running context.Context, ready func(context.Context) map[string]error, metrics http.Handler) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]bool{"alive": true})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		result := readiness{Ready: running.Err() == nil, Checks: map[string]string{}}
		for name, err := range ready(ctx) {
			result.Checks[name] = "ok"
			if err != nil {
				result.Ready, result.Checks[name] = false, err.Error()
			}
		}
		if running.Err() != nil {
			result.Checks["nats"] = "the executor is stopping"
		}
		status := http.StatusOK
		if !result.Ready {
			status = http.StatusServiceUnavailable
		}
		answer(w, status, result)
	})
	mux.Handle("GET /metrics", metrics)
	return &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
	}
}

// readiness is the answer of /readyz, of the same form as a dispatcher's.
type readiness struct {
	Ready  bool              `json:"ready"`
	Checks map[string]string `json:"checks"`
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // who asked is gone
}
