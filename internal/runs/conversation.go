package runs

import (
	"context"
	"encoding/json"
)

func newest(items []json.RawMessage) string {
	if len(items) == 0 {
		return ""
	}
	return readItem(items[0]).ID
}

// maybeTaken looks, before a request that may have been made already is made again,
// whether the conversation has taken it: a conversation keeps what a request adds, so that
// a second one would say everything twice. The run ends then, since the answer cannot be
// told from what others said.
func (r *runner) maybeTaken(ctx context.Context) (bool, error) {
	if r.request.conversation == "" {
		return false, nil
	}
	items, err := r.e.parts.Model.Items(ctx, r.request.conversation)
	if err != nil {
		return false, err
	}
	if newest(items) == r.round().LastItem {
		return false, nil
	}
	return true, r.finish(Failed, ReasonUncertain,
		"a request may have been added to the conversation "+r.request.conversation+
			", and its answer is lost; read the conversation, and start another run if the answer is missing")
}
