package simulator

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"
)

// strike does what the faults want with a request before it is served. It reports true when the request is done.
func (s *Simulator) strike(w http.ResponseWriter, r *http.Request, at Endpoint) (done bool) {
	if delay := s.faults.latency(at); delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return true
		case <-s.ctx.Done():
		}
	}
	rule := s.faults.fireRule(at, FaultRateLimited, FaultInternalError, FaultUnavailable, FaultBadGateway)
	switch rule.Kind {
	case FaultRateLimited:
		(&apiError{
			status: http.StatusTooManyRequests, kind: "rate_limit_error", code: "rate_limit_exceeded",
			message: "Too many requests.", retryAfter: rule.RetryAfter,
		}).write(w)
	case FaultInternalError:
		internalError().write(w)
	case FaultUnavailable:
		e := &apiError{
			status: http.StatusServiceUnavailable, kind: "server_error", code: "service_unavailable_error",
			message: "The service is unavailable.", retryAfter: rule.RetryAfter,
		}
		if s.cfg.Profile == ProfileOpenAgentCore {
			e.code = "execution_unavailable"
		}
		e.write(w)
	case FaultBadGateway:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadGateway)
		_, _ = w.Write([]byte("<html><head><title>502 Bad Gateway</title></head><body>502 Bad Gateway</body></html>\n"))
	default:
		return false
	}
	return true
}

func internalError() *apiError {
	return &apiError{
		status: http.StatusInternalServerError, kind: "server_error", code: "internal_error",
		message: "The server had an error.",
	}
}

// discardWriter takes an answer that nobody will see.
type discardWriter struct{ header http.Header }

func (d discardWriter) Header() http.Header         { return d.header }
func (d discardWriter) Write(p []byte) (int, error) { return len(p), nil }
func (d discardWriter) WriteHeader(int)             {}

func (s *Simulator) getFaults(w http.ResponseWriter, _ *http.Request) error {
	body, err := json.Marshal(s.Faults())
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, body)
	return nil
}

func (s *Simulator) putFaults(w http.ResponseWriter, r *http.Request) error {
	body, err := s.readBody(w, r)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	var f Faults
	if err := dec.Decode(&f); err != nil {
		return invalidRequest("The faults are not usable: %s.", err)
	}
	if err := s.SetFaults(f); err != nil {
		return invalidRequest("%s.", err)
	}
	return s.getFaults(w, r)
}
