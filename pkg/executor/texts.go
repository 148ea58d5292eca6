package executor

import "strings"

// Texts for the model that the executor itself decides.
const (
	unknownOutcomeText = "the outcome of this call is unknown: an earlier run was interrupted and may or may not have taken effect; do not assume either"
	crashedText        = "function crashed: it was started several times and never finished"
	noVerifyText       = "on_uncertain is verify, and this executor has no verify handler for the function"
	expiredText        = "the call's deadline passed before the function was started"
)

// errorText is the error's text as the API takes it, never empty.
func errorText(err error) string {
	text := strings.ToValidUTF8(err.Error(), "\uFFFD")
	if strings.TrimSpace(text) == "" {
		return "the function failed without saying why"
	}
	return text
}
