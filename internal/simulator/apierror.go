package simulator

import (
	"fmt"
	"net/http"
	"strconv"
)

// apiError is an answer in the service's error envelope.
type apiError struct {
	status  int
	kind    string // error.type
	code    string // error.code; empty means null
	message string
	param   string // error.param; empty means null
	// retryAfter, when not empty, becomes the Retry-After header.
	retryAfter string
}

func (e *apiError) Error() string { return strconv.Itoa(e.status) + " " + e.code + ": " + e.message }

func invalidRequest(format string, args ...any) *apiError {
	return &apiError{
		status: http.StatusBadRequest, kind: "invalid_request_error", code: "invalid_request_error",
		message: fmt.Sprintf(format, args...),
	}
}

// refused is a 400 of the Responses API, which names the parameter and often has no code.
func refused(param, code, format string, args ...any) *apiError {
	return &apiError{
		status: http.StatusBadRequest, kind: "invalid_request_error", code: code, param: param,
		message: fmt.Sprintf(format, args...),
	}
}

// missing is the refusal of a request without a parameter that it needs.
func missing(param string) *apiError {
	return refused(param, "missing_required_parameter", "Missing required parameter: '%s'.", param)
}

func invalidValue(param, got, accepted string) *apiError {
	return refused(param, "invalid_value", "Invalid value: '%s'. Supported values are: %s.", got, accepted)
}

// unknownObject is the Responses API's 404, which has no code.
func unknownObject(format string, args ...any) *apiError {
	return &apiError{
		status: http.StatusNotFound, kind: "invalid_request_error", message: fmt.Sprintf(format, args...),
	}
}

func conflict(format string, args ...any) *apiError {
	return &apiError{
		status: http.StatusConflict, kind: "conflict_error", code: "conflict_error",
		message: fmt.Sprintf(format, args...),
	}
}

func notFound(what, id string) *apiError {
	return &apiError{
		status: http.StatusNotFound, kind: "invalid_request_error", code: "not_found_error",
		message: fmt.Sprintf("%s %q not found.", what, id),
	}
}

func unauthorized(message string) *apiError {
	return &apiError{status: http.StatusUnauthorized, kind: "invalid_request_error", message: message}
}

func invalidBeta() *apiError {
	return &apiError{
		status: http.StatusBadRequest, kind: "invalid_request_error", code: "invalid_beta",
		message: "The Agents API needs the header OpenAI-Beta: agents=v1.",
	}
}

// write sends the envelope. The param of every error of the Agents API is null.
func (e *apiError) write(w http.ResponseWriter) {
	b := append([]byte(nil), `{"error":{"type":`...)
	b = appendString(b, e.kind)
	b = append(b, `,"code":`...)
	b = appendStringOrNull(b, e.code)
	b = append(b, `,"message":`...)
	b = appendString(b, e.message)
	b = append(b, `,"param":`...)
	b = appendStringOrNull(b, e.param)
	b = append(b, `}}`...)
	if e.retryAfter != "" {
		w.Header().Set("Retry-After", e.retryAfter)
	}
	writeJSON(w, e.status, b)
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // A client that is gone cannot be told.
}
