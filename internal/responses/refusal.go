package responses

import (
	"errors"
	"slices"
	"strings"

	"github.com/callfan/callfan/internal/apiclient"
	"github.com/callfan/callfan/pkg/call"
)

// CodePreviousResponse is the code of the refusal that says that the previous response
// does not exist.
const CodePreviousResponse = "previous_response_not_found"

// createRefusal reads a refusal of a request for a response.
func createRefusal(err error) error {
	r, ok := errors.AsType[*call.Refusal](err)
	if !ok || (r.Class != call.RefusedInvalid && r.Class != call.RefusedGone) {
		return err
	}
	r.Class = call.RefusedInvalid // what does not exist is named by the request
	message := r.Err.Error()
	if lower := strings.ToLower(message); strings.Contains(lower, "previous response") && strings.Contains(lower, "not found") {
		r.Code = CodePreviousResponse // servers that imitate the API leave it out
	}
	r.CallID = missingOutput(message)
	return err
}

// missingOutput is the call of which the API says that its output is missing, or of an
// output that there is no such call; empty when it says neither. The id is the last word:
// "No tool output found for function call call_1."
func missingOutput(message string) string {
	if !strings.HasPrefix(message, "No tool output found for ") && !strings.HasPrefix(message, "No tool call found for ") {
		return ""
	}
	words := strings.Fields(message)
	return strings.Trim(words[len(words)-1], ".'\"`")
}

// frameClass sorts an error that a stream reports.
func frameClass(said apiclient.Error) call.RefusalClass {
	switch {
	case slices.Contains([]string{"unauthorized", "forbidden", "authentication_error", "invalid_api_key"}, said.Code):
		return call.RefusedAuth
	case said.Code == "not_found_error":
		return call.RefusedGone
	case said.Type == "invalid_request_error", slices.Contains([]string{
		"invalid_request_error", "invalid_prompt", "context_length_exceeded", CodePreviousResponse,
	}, said.Code):
		return call.RefusedInvalid
	default:
		return call.RefusedBusy
	}
}
