package simulator

import "strconv"

// Events are rendered once, and only when a stream listens; every stream frames the same bytes. s.mu must be held by
// the callers of all emit methods.

func newEvent(kind string) []byte {
	b := make([]byte, 0, 512)
	b = append(b, `{"type":"`...)
	b = append(b, kind...)
	b = append(b, '"')
	return appendStringField(b, "event_id", newID("evt_"))
}

// emit hands an event to all streams of the session.
func (s *session) emit(event []byte) {
	for st := range s.streams {
		st.push(event)
	}
}

func (s *session) sessionEvent(kind string) []byte {
	return append(s.append(appendKey(newEvent(kind), "session")), '}')
}

// emitSession tells the session's state; an idle session ends the streams of its creation.
func (s *session) emitSession(kind string) {
	if len(s.streams) == 0 {
		return
	}
	s.emit(s.sessionEvent(kind))
	if kind == "agent.session.idle" {
		for st := range s.streams {
			if st.untilIdle {
				st.end()
			}
		}
	}
}

func (s *session) turnEvent(kind string, t *turn) []byte {
	b := appendStringField(newEvent(kind), "session_id", s.id)
	b = appendStringField(b, "turn_id", t.id)
	return t.append(appendKey(b, "turn"))
}

func (s *session) emitTurn(kind string, t *turn) {
	if len(s.streams) > 0 {
		s.emit(append(s.turnEvent(kind, t), '}'))
	}
}

func (s *session) emitTurnEnd(kind string, t *turn) {
	if len(s.streams) > 0 {
		s.emit(append(s.turnEvent(kind, t), `,"usage":null}`...))
	}
}

func (s *session) itemEvent(kind string, it *item) []byte {
	b := appendStringField(newEvent(kind), "session_id", s.id)
	b = appendStringField(b, "turn_id", it.turn.id)
	b = appendKey(b, "output_index")
	if it.kind == itemUserMessage || it.kind == itemFunctionOutput {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, int64(it.outputIndex), 10)
	}
	return append(it.append(appendKey(b, "item")), '}')
}

func (s *session) emitItem(kind string, it *item) {
	if len(s.streams) > 0 {
		s.emit(s.itemEvent(kind, it))
	}
}

// emitTextPart tells about the only content part of an assistant message.
func (s *session) emitTextPart(kind string, it *item, field string, value func([]byte) []byte) {
	if len(s.streams) == 0 {
		return
	}
	b := appendStringField(newEvent(kind), "session_id", s.id)
	b = appendStringField(b, "turn_id", it.turn.id)
	b = appendStringField(b, "item_id", it.id)
	b = appendIntField(b, "output_index", int64(it.outputIndex))
	b = appendIntField(b, "content_index", 0)
	s.emit(append(value(appendKey(b, field)), '}'))
}

// errorEvent is the frame that makes official clients close a stream with an error.
func errorEvent(sessionID, code, message string) []byte {
	b := append(newEvent("error"), `,"error":{"type":"server_error"`...)
	b = appendStringField(b, "code", code)
	b = appendStringField(b, "message", message)
	b = append(b, `,"param":null}`...)
	return append(appendStringField(b, "session_id", sessionID), '}')
}
