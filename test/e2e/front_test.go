package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// front stands before the simulator and answers some requests otherwise, from the moment that it is told to.
type front struct {
	mu sync.Mutex
	// answer decides about a request; false passes it on.
	answer func(w http.ResponseWriter, r *http.Request, pass http.Handler) bool
}

func (f *front) begin(answer func(http.ResponseWriter, *http.Request, http.Handler) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

func (f *front) end() { f.begin(nil) }

// wrap is what options.front takes.
func (f *front) wrap(pass http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		answer := f.answer
		f.mu.Unlock()
		if answer == nil || !answer(w, r, pass) {
			pass.ServeHTTP(w, r)
		}
	})
}

// refusing answers the submissions of results with a status.
func refusing(status int, asked func()) func(http.ResponseWriter, *http.Request, http.Handler) bool {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/events") {
			return false
		}
		asked()
		refuse(w, status)
		return true
	}
}

func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(`{"error":{"message":"no","type":"invalid_request_error","param":null,"code":null}}`))
}

// vanished answers as if a session did not exist.
func vanished(id string) func(http.ResponseWriter, *http.Request, http.Handler) bool {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !strings.Contains(r.URL.Path, id) {
			return false
		}
		refuse(w, http.StatusNotFound)
		return true
	}
}

// failed shows a session as failed, with nothing required any more.
func failed(id string) func(http.ResponseWriter, *http.Request, http.Handler) bool {
	return func(w http.ResponseWriter, r *http.Request, pass http.Handler) bool {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, id) {
			return false
		}
		shown := httptest.NewRecorder()
		pass.ServeHTTP(shown, r)
		var session map[string]any
		if json.Unmarshal(shown.Body.Bytes(), &session) != nil {
			return false
		}
		session["status"], session["required_actions"] = "failed", []any{}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(session)
		return true
	}
}
