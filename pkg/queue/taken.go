package queue

import (
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/callfan/callfan/pkg/call"
)

var (
	ackBody        = []byte("+ACK")
	nakBody        = []byte("-NAK")
	inProgressBody = []byte("+WPI")
)

// Taken is a call that an executor holds until it acks it or its lease runs out.
type Taken struct {
	// Dispatch is the hand-over. Only valid when Invalid is nil.
	Dispatch call.Dispatch
	// Deliveries counts how often this message was handed out, from 1. More than 1
	// means that an earlier lease ran out. A server that was killed may have
	// forgotten, so 1 proves nothing.
	Deliveries int
	// Transit is the longest that the message may have been on its way: normally the time
	// since the server was last heard. A lease can run out on a message that is stuck.
	Transit time.Duration
	// Invalid says why the message is no call; such a message can only be ended by
	// Term, and logged.
	Invalid error
	// Subject and Body are the message as it came.
	Subject string
	Body    []byte

	nc     *nats.Conn
	reply  string
	header nats.Header
}

// InProgress renews the lease for a full AckWait. It returns at once; the error is
// about the connection only.
func (t *Taken) InProgress() error { return t.nc.Publish(t.reply, inProgressBody) }

// Ack removes the call from the queue. It does not wait for the server: a lost ack
// means one more delivery, which Lookup or the duplicate window absorbs.
func (t *Taken) Ack() error { return t.nc.Publish(t.reply, ackBody) }

// Term removes the call from the queue as unusable. The reason goes into the server's
// advisory, with what a dispatcher needs to answer the call; see Conn.ServeAdvisories.
func (t *Taken) Term(reason string) error {
	return t.nc.Publish(t.reply, append([]byte("+TERM "), encodeTermReason(reason, t.header)...))
}

// deliveries reads the delivery count from the reply subject of a delivered
// message: $JS.ACK.<stream>.<consumer>.<count>.…, or the form with domain and
// account before the stream.
func deliveries(reply string) int {
	at := 4
	if strings.Count(reply, ".") >= 10 {
		at = 6
	}
	for ; at > 0; at-- {
		_, reply, _ = strings.Cut(reply, ".")
	}
	count, _, _ := strings.Cut(reply, ".")
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 {
		return 1
	}
	return n
}
