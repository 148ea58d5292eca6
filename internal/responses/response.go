package responses

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/callfan/callfan/internal/apiclient"
	"github.com/callfan/callfan/internal/runs"
)

// response is the API's object, as far as callfan reads it. The official client's type
// would decode every item.
type response struct {
	ID      string            `json:"id"`
	Status  string            `json:"status"`
	Output  []json.RawMessage `json:"output"`
	Error   json.RawMessage   `json:"error"`
	Details struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

// outcome is how the response ended.
func (r response) outcome() *runs.Outcome {
	o := &runs.Outcome{Status: r.Status, Reason: r.Details.Reason, Output: r.Output}
	if present(r.Error) {
		said := apiclient.ReadError(r.Error)
		o.Error = said.Message
		if r.Status == "failed" || o.Reason == "" {
			o.Reason = said.Code
		}
	}
	return o
}

// unmarshal decodes what it can: a member that callfan does not understand spoils no
// other.
func unmarshal(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	if _, mistyped := errors.AsType[*json.UnmarshalTypeError](err); mistyped {
		return nil
	}
	return err
}

// present says that a member is there and not null.
func present(raw json.RawMessage) bool { return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) }

// itemID is the id of an item, empty when it has none.
func itemID(item json.RawMessage) string {
	var wire struct {
		ID string `json:"id"`
	}
	_ = unmarshal(item, &wire)
	return wire.ID
}
