package sources

// The triggers that sources give with a nudge: machine words for logs and counters.
const (
	// TriggerStreamOpen: a stream was opened; what happened before it is unknown.
	TriggerStreamOpen = "stream_open"
	// TriggerStreamLost: a stream that was open ended.
	TriggerStreamLost = "stream_lost"
	// TriggerGone: the API says that the session does not exist.
	TriggerGone = "gone"
	// TriggerRequiresAction: the session waits for required actions.
	TriggerRequiresAction = "requires_action"
	// TriggerCallAdded: a function call was added while the session waited.
	TriggerCallAdded = "call_added"
	// TriggerTurnOver: a turn was completed, failed or was cancelled.
	TriggerTurnOver = "turn_over"
	// TriggerIdle and TriggerFailed: the session's status changed.
	TriggerIdle   = "idle"
	TriggerFailed = "failed"
	// TriggerListed: the list of sessions shows the session waiting.
	TriggerListed = "listed"
)

// watcher turns one subscription's events into triggers.
type watcher struct {
	// waiting says that the session is, or may be, in requires_action. Whether the
	// API repeats the status event when calls are added to a waiting session is
	// not documented, so their items count then. Otherwise an item only announces
	// the status event that follows it.
	waiting bool
}

// trigger is what an event means; empty when it means nothing here.
func (w *watcher) trigger(e Event) string {
	switch e.Type {
	case "agent.session.requires_action":
		w.waiting = true
		return TriggerRequiresAction
	case "agent.session.in_progress":
		w.waiting = false
	case "agent.session.idle":
		w.waiting = false
		return TriggerIdle
	case "agent.session.failed":
		w.waiting = false
		return TriggerFailed
	case "agent.session.turn.completed", "agent.session.turn.failed", "agent.session.turn.cancelled":
		return TriggerTurnOver
	case "agent.session.turn.item.added":
		if w.waiting && e.Item == "function_call" {
			return TriggerCallAdded
		}
	}
	return ""
}
