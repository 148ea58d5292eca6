package simulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
)

// readBody returns the request body after the service's checks of size, content type and strict JSON. A body of zero
// length, or null, is {}.
func (s *Simulator) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.sw.MaxBodyBytes))
	if err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			e := invalidRequest("The request body is larger than %d bytes.", s.sw.MaxBodyBytes)
			e.status = s.sw.TooLargeStatus
			return nil, e
		}
		return nil, invalidRequest("The request body could not be read: %s", err)
	}
	if len(body) == 0 {
		return []byte("{}"), nil
	}
	if !isJSONType(r.Header.Get("Content-Type")) {
		return nil, invalidRequest("Unsupported content type %q: send application/json.", r.Header.Get("Content-Type"))
	}
	if err := checkStrict(body); err != nil {
		return nil, invalidRequest("The request body %s.", err)
	}
	switch trimmed := bytes.TrimSpace(body); {
	case bytes.Equal(trimmed, []byte("null")):
		return []byte("{}"), nil
	case trimmed[0] != '{':
		return nil, invalidRequest("The request body must be a JSON object.")
	}
	return body, nil
}

// decodeBody reads the body into v. A value of the wrong type is a 400 that names the field.
func (s *Simulator) decodeBody(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := s.readBody(w, r)
	if err != nil {
		return err
	}
	return decodeFields(body, v)
}

func decodeFields(body []byte, v any) error {
	err := json.Unmarshal(body, v)
	if err == nil {
		return nil
	}
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return invalidRequest("Invalid type for %q: got a JSON %s.", wrong.Field, wrong.Value)
	}
	return invalidRequest("The request body is not usable: %s.", err)
}

func isJSONType(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	return media == "application/json" ||
		strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")
}

// isNull reports whether raw is absent or null.
func isNull(raw json.RawMessage) bool {
	return len(raw) == 0 || bytes.Equal(bytes.TrimSpace(raw), []byte("null"))
}
