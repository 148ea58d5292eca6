package agents

import (
	"net/http"
	"strings"

	"github.com/callfan/callfan/internal/apiclient"
	"github.com/callfan/callfan/pkg/call"
)

// submitRefusal reads what became of a submission.
func (c *Client) submitRefusal(a apiclient.Answer, err error, batch call.Batch) *call.Refusal {
	r := c.api.Refusal(a, err)
	if a.Status < http.StatusBadRequest {
		return r
	}
	said, enveloped := apiclient.ReadEnvelope(a.Body)
	switch {
	case enveloped && unknownPending(a.Status, said.Message):
		r.Class = call.RefusedUnknownCall
	case a.Status == http.StatusConflict:
		r.Class = call.RefusedConflict
	}
	switch r.Class {
	case call.RefusedUnknownCall, call.RefusedConflict, call.RefusedInvalid, call.RefusedTooLarge:
		r.CallID = named(said.Message, batch.Answers)
	}
	return r
}

// unknownPending recognises the one message of the API that has a meaning of its
// own. The official clients compare it as a whole; OpenAgentCore leaves the id out.
func unknownPending(status int, message string) bool {
	return (status == http.StatusBadRequest || status == http.StatusNotFound) &&
		strings.HasPrefix(message, "Unknown pending tool call")
}
