package executor

import (
	"strings"

	"github.com/callfan/callfan/pkg/call"
)

// Texts for the model and for operators that the executor itself decides.
const (
	unknownOutcomeText = call.UnknownOutcomeText
	crashedText        = call.CrashedText
	noVerifyText       = "on_uncertain is verify, and this executor has no verify handler for the function"
	mayHaveRunText     = "it may have run before, and this executor has no verify handler for the function"
	notLookedUpText    = "it may have run before, and no dispatcher said in time whether it was answered"
	notVerifiedText    = "it may have run before, and the call's deadline passed before it could be verified"
	interruptedText    = "the executor stopped and interrupted the function"
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
