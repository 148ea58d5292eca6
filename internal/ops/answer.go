package ops

import (
	"encoding/json"
	"net/http"
)

// Problem is the body of every error.
type Problem struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func write(w http.ResponseWriter, status int, body any) {
	writeHeader(w, status)
	_ = json.NewEncoder(w).Encode(body) // who asked is gone
}

// writeBytes answers with JSON as it is.
func writeBytes(w http.ResponseWriter, status int, body []byte) {
	writeHeader(w, status)
	_, _ = w.Write(body) // who asked is gone
}

func writeHeader(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	var p Problem
	p.Error.Code, p.Error.Message = code, message
	write(w, status, p)
}

// plainErrors gives the answers of the multiplexer itself the form of all errors.
func plainErrors(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(&muxAnswer{ResponseWriter: w}, r)
	})
}

// muxAnswer replaces the multiplexer's plain text for an unknown path or method.
type muxAnswer struct {
	http.ResponseWriter
	replaced bool
}

// WriteHeader turns a plain-text 404 or 405 into the form of all errors.
func (a *muxAnswer) WriteHeader(status int) {
	text := a.Header().Get("Content-Type") != "application/json"
	switch {
	case status == http.StatusNotFound && text:
		a.replaced = true
		refuse(a.ResponseWriter, status, "not_found", "there is nothing at this path")
	case status == http.StatusMethodNotAllowed && text:
		a.replaced = true
		refuse(a.ResponseWriter, status, "method_not_allowed", "use "+a.Header().Get("Allow"))
	default:
		a.ResponseWriter.WriteHeader(status)
	}
}

// Write drops the text of an answer that was replaced.
func (a *muxAnswer) Write(b []byte) (int, error) {
	if a.replaced {
		return len(b), nil
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (a *muxAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
