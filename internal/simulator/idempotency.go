package simulator

import (
	"crypto/sha256"
	"net/http"
)

// maxRememberedKeys bounds the keys a session remembers; the oldest go first.
const maxRememberedKeys = 4096

// keyMemory maps the Idempotency-Keys of accepted POSTs to what they carried.
type keyMemory struct {
	bodies map[string][sha256.Size]byte
	order  []string
}

func (m *keyMemory) remember(key string, body []byte) { m.put(key, sha256.Sum256(body)) }

func (m *keyMemory) put(key string, sum [sha256.Size]byte) {
	if m.bodies == nil {
		m.bodies = make(map[string][sha256.Size]byte)
	}
	if _, known := m.bodies[key]; !known {
		if len(m.order) == maxRememberedKeys {
			delete(m.bodies, m.order[0])
			m.order = m.order[1:]
		}
		m.order = append(m.order, key)
	}
	m.bodies[key] = sum
}

// checkKey reports a replay: a POST that was accepted under the same key, which is answered like the first and does
// nothing.
func (s *session) checkKey(key string, body []byte) (replay bool, err error) {
	known, used := s.keys.bodies[key]
	if !used {
		return false, nil
	}
	if known == sha256.Sum256(body) {
		s.sim.stats.replays.Add(1)
		return true, nil
	}
	switch s.sim.sw.SameKeyOtherBody {
	case "ignore":
		s.sim.stats.replays.Add(1)
		return true, nil
	case "conflict":
		return false, &apiError{
			status: http.StatusConflict, kind: "conflict_error", code: "idempotency_conflict",
			message: "The Idempotency-Key was used with another request.",
		}
	default:
		return false, nil
	}
}
