package dispatcher

// The troubles that a session can be in.
const (
	troubleStore    = "the store cannot be read"
	troubleRetrieve = "the session cannot be retrieved"
	troubleClaim    = "calls cannot be claimed"
	troublePublish  = "calls cannot be published"
	troubleSave     = "results cannot be saved"
	troubleWithdraw = "calls cannot be taken back"
	troubleSubmit   = "results cannot be submitted"
	troubleMove     = "what was submitted cannot be recorded"
)

// fault logs a trouble once, when it begins.
func (s *session) fault(trouble string, err error) {
	if !s.troubles[trouble] {
		s.troubles[trouble] = true
		s.log.Warn("in trouble", "trouble", trouble, "error", err)
	}
}

// recovered logs the end of a trouble.
func (s *session) recovered(trouble string) {
	if s.troubles[trouble] {
		delete(s.troubles, trouble)
		s.log.Info("out of trouble", "trouble", trouble)
	}
}
