package queue

import (
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// Protocol is the version of the wire protocol that this package speaks.
const Protocol = "1"

// The headers of the protocol. NATS keeps their case.
const (
	headerMessageID      = "Nats-Msg-Id"
	headerTTL            = "Nats-TTL"
	headerProtocol       = "Fn-Protocol"
	headerKey            = "Fn-Key"
	headerAttempt        = "Fn-Attempt"
	headerHandover       = "Fn-Handover"
	headerTimeout        = "Fn-Timeout-Ms"
	headerDeadline       = "Fn-Deadline"
	headerResultSubject  = "Fn-Result-Subject"
	headerNonce          = "Fn-Nonce"
	headerIdempotencyKey = "Fn-Idempotency-Key"
	headerTraceparent    = "traceparent"
	headerUncertain      = "Fn-Uncertain"
	headerOnUncertain    = "Fn-On-Uncertain"
	headerReason         = "Fn-Reason"
	headerDetail         = "Fn-Detail"
	headerSubject        = "Fn-Subject"
	headerTruncated      = "Fn-Truncated"
)

// header reads the one value of a header without canonicalising its name.
func header(h nats.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// headerSet fills a header map from one backing array.
type headerSet struct {
	header nats.Header
	values []string
}

func newHeaderSet(n int) headerSet {
	return headerSet{header: make(nats.Header, n), values: make([]string, 0, n)}
}

func (s *headerSet) add(name, value string) {
	s.values = append(s.values, value)
	end := len(s.values)
	s.header[name] = s.values[end-1 : end : end]
}

// expiryGrace is how long a call stays in the stream after its deadline. By then
// the dispatcher has answered it, and an executor would only throw it away.
const expiryGrace = time.Minute

// expiry is the time that the server may keep a message with this deadline.
func expiry(deadline, now time.Time) string {
	left := max(deadline.Sub(now), 0) + expiryGrace
	return strconv.FormatInt(int64(left/time.Second), 10) + "s"
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// envelopeSize is what the server compares with max_payload: the payload and the
// encoded headers.
func envelopeSize(m *nats.Msg) int64 {
	size := len(m.Data)
	if len(m.Header) > 0 {
		size += len("NATS/1.0\r\n") + len("\r\n")
		for name, values := range m.Header {
			for _, v := range values {
				size += len(name) + len(": ") + len(v) + len("\r\n")
			}
		}
	}
	return int64(size)
}
