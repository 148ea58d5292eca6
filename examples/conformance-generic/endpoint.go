package main

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"
)

// listen serves the functions until the process ends.
func (ex *runningExecutor) listen() (address string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: ex, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(l) }()
	return l.Addr().String(), nil
}

// ServeHTTP is one call of a function.
func (ex *runningExecutor) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return
	}
	text := func(name string) string {
		value, err := url.PathUnescape(q.Header.Get(name))
		if err != nil {
			return err.Error()
		}
		return value
	}
	attempt, _ := strconv.Atoi(q.Header.Get("X-Fn-Attempt"))
	deadline, _ := time.Parse(time.RFC3339, q.Header.Get("X-Fn-Deadline"))
	r := request{
		Function: text("X-Fn-Function"), Session: text("X-Fn-Session-Id"), Turn: text("X-Fn-Turn-Id"), Call: text("X-Fn-Call-Id"),
		Key: q.Header.Get("Idempotency-Key"), Traceparent: q.Header.Get("Traceparent"), Attempt: attempt, Deadline: deadline,
		Verify: q.Header.Get("X-Fn-Verify") == "1", Arguments: body,
	}
	switch a := r.perform(q.Context()); a.status {
	case success:
		_, _ = io.WriteString(w, a.text)
	case noValue:
		w.WriteHeader(http.StatusNoContent)
	case failure:
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, a.text)
	case invalid:
		w.Header().Set("X-Fn-Cause", "invalid_arguments")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, a.text)
	case technical:
		w.Header().Set("Retry-After", a.seconds())
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, a.text)
	case notDone:
		w.Header().Set("X-Fn-Verdict", "not-done")
		w.WriteHeader(http.StatusNotFound)
	case crashed:
		w.Header().Set("X-Fn-Cause", "panic") // as a middleware that recovers would
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, a.text)
	case ended:
		_ = ex.cmd.Process.Kill()
		os.Exit(3)
	}
}
