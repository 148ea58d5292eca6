package runs

// Notice is what those who follow a run are told. It is made for displays; the run's
// state is what counts.
type Notice struct {
	// Type is one of the words below.
	Type string `json:"type"`
	Run  string `json:"run_id"`
	// Round counts from 1.
	Round int `json:"round,omitempty"`
	// Response, Call and Function are set where they are known.
	Response string `json:"response_id,omitempty"`
	Call     string `json:"call_id,omitempty"`
	Function string `json:"name,omitempty"`
	// Delta is a piece of the answer.
	Delta string `json:"delta,omitempty"`
	// Status, Reason, Error, Text and Refusal are those of the run, in NoticeEnded.
	Status  Status `json:"status,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Error   string `json:"error,omitempty"`
	Text    string `json:"output_text,omitempty"`
	Refusal string `json:"refusal,omitempty"`
}

// The types of notices.
const (
	NoticeCreated = "run.created"
	// NoticeRound: a request is being made.
	NoticeRound = "run.round"
	// NoticeCall: the model has begun to call a function; its arguments are on their way.
	NoticeCall = "run.call"
	// NoticeDispatched: the function may be run; NoticeAnswered: its output is stored.
	NoticeDispatched = "run.dispatched"
	NoticeAnswered   = "run.answered"
	// NoticeText: the answer grows.
	NoticeText = "run.text.delta"
	// NoticeEnded is the last one.
	NoticeEnded = "run.ended"
)

// Notices carries notices to whoever follows a run, on any replica.
type Notices interface {
	// Tell must not block; notices may be lost.
	Tell(Notice)
}

// EndNotice is the last notice about a run that is over.
func (r Run) EndNotice() Notice {
	return Notice{
		Type: NoticeEnded, Run: r.ID, Round: len(r.Rounds), Status: r.Status, Reason: r.Reason, Error: r.Error,
		Text: r.Text, Refusal: r.Refusal,
	}
}
