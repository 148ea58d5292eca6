package simulator

import (
	"encoding/json"
	"net/http"
	"slices"
)

// outputLog remembers which outputs were received for each call. The store's mu guards it.
type outputLog struct {
	byCall map[string]*ReceivedOutput
	order  []string
	total  int64
}

// ReceivedOutput is a call of the Responses API and all outputs that requests carried for it, for tests.
type ReceivedOutput struct {
	CallID string `json:"call_id"`
	// ResponseID is the response that has the call; empty for an output to an unknown call.
	ResponseID string `json:"response_id"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Contents are the different outputs, byte for byte, in the order of their first arrival. More than one means that
	// the model could have been told two things.
	Contents []ReceivedContent `json:"contents"`
}

// ReceivedContent is one output and how many requests carried it, refused ones included.
type ReceivedContent struct {
	// Output is the JSON of output, or of tools for a tool search.
	Output json.RawMessage `json:"output"`
	// Caller is the caller that the first request repeated; nil for none.
	Caller json.RawMessage `json:"caller,omitempty"`
	Times  int             `json:"times"`
}

func (l *outputLog) of(callID string) *ReceivedOutput {
	out := l.byCall[callID]
	if out == nil {
		out = &ReceivedOutput{CallID: callID}
		l.byCall[callID] = out
		l.order = append(l.order, callID)
	}
	return out
}

func (l *outputLog) emitted(responseID string, u *utterance) {
	if u.CallID == "" {
		return
	}
	out := l.of(u.CallID)
	out.ResponseID, out.Namespace, out.Name = responseID, u.Namespace, u.Name
}

// receive notes the outputs of a request.
func (st *responseStore) receive(items []*responseItem) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, it := range items {
		if !it.isAnswer() {
			continue
		}
		st.outputs.total++
		out := st.outputs.of(it.callID)
		same := func(c ReceivedContent) bool { return string(c.Output) == string(it.output) }
		if i := slices.IndexFunc(out.Contents, same); i >= 0 {
			out.Contents[i].Times++
			continue
		}
		out.Contents = append(out.Contents, ReceivedContent{Output: it.output, Caller: it.caller, Times: 1})
	}
}

// ReceivedOutputs returns all calls of the Responses API in the order they were made, with the outputs received.
func (s *Simulator) ReceivedOutputs() []ReceivedOutput {
	st := &s.responses
	st.mu.RLock()
	defer st.mu.RUnlock()
	outputs := make([]ReceivedOutput, 0, len(st.outputs.order))
	for _, id := range st.outputs.order {
		out := *st.outputs.byCall[id]
		out.Contents = slices.Clone(out.Contents)
		outputs = append(outputs, out)
	}
	return outputs
}

// countOutputs returns how many outputs came, and for how many calls different ones.
func (st *responseStore) countOutputs() (received, contradicted int64) {
	st.mu.RLock()
	defer st.mu.RUnlock()
	for _, out := range st.outputs.byCall {
		if len(out.Contents) > 1 {
			contradicted++
		}
	}
	return st.outputs.total, contradicted
}

// ResponseInfo is what tests want to know of a response.
type ResponseInfo struct {
	ID           string            `json:"id"`
	Status       string            `json:"status"`
	Previous     string            `json:"previous_response_id,omitempty"`
	Conversation string            `json:"conversation,omitempty"`
	Metadata     map[string]string `json:"metadata,omitempty"`
	// Calls are the ids of its calls, Answered those of the outputs in its input.
	Calls    []string `json:"calls,omitempty"`
	Answered []string `json:"answered,omitempty"`
}

// Responses returns all responses in the order they were made, with those that are not stored or were deleted.
func (s *Simulator) Responses() []ResponseInfo {
	all := s.responses.all()
	infos := make([]ResponseInfo, 0, len(all))
	for _, r := range all {
		infos = append(infos, r.info())
	}
	return infos
}

func (r *response) info() ResponseInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	info := ResponseInfo{ID: r.id, Status: string(r.status), Previous: r.previous}
	if r.conversation != nil {
		info.Conversation = r.conversation.id
	}
	_ = json.Unmarshal(r.metadata, &info.Metadata) // It was checked when it came.
	for _, it := range r.output {
		if it.isCall() {
			info.Calls = append(info.Calls, it.callID)
		}
	}
	for _, it := range r.input {
		if it.isAnswer() {
			info.Answered = append(info.Answered, it.callID)
		}
	}
	return info
}

func (s *Simulator) getResponses(w http.ResponseWriter, _ *http.Request) error {
	body, err := json.Marshal(map[string]any{"responses": s.Responses()})
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, body)
	return nil
}

func (s *Simulator) getOutputs(w http.ResponseWriter, _ *http.Request) error {
	b := []byte(`{"outputs":[`)
	for i, out := range s.ReceivedOutputs() {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"call_id":`...), out.CallID)
		b = appendStringField(b, "response_id", out.ResponseID)
		b = appendStringField(b, "namespace", out.Namespace)
		b = appendStringField(b, "name", out.Name)
		b = append(appendKey(b, "contents"), '[')
		for j, content := range out.Contents {
			if j > 0 {
				b = append(b, ',')
			}
			b = append(append(b, `{"output":`...), content.Output...)
			b = appendRawField(b, "caller", content.Caller)
			b = append(appendIntField(b, "times", int64(content.Times)), '}')
		}
		b = append(b, "]}"...)
	}
	writeJSON(w, http.StatusOK, append(b, "]}"...))
	return nil
}
