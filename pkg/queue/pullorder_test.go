package queue

import (
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
)

// A consumer with replicas says "Batch Completed" at once, and sends the messages after they were replicated. A pull that
// ended there left them in its line, and the executor ran them seconds later, when their leases had run out.
func TestAPullWaitsForMessagesThatComeAfterItsEnd(t *testing.T) {
	t.Parallel()
	server := testservers.NATS(t)
	cluster, err := nats.Connect(server.URL())
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	status := func(to, text, pending string) {
		m := nats.NewMsg(to)
		m.Header.Set("Status", "409")
		m.Header.Set("Description", text)
		m.Header.Set("Nats-Pending-Messages", pending)
		require.NoError(t, cluster.PublishMsg(m))
	}
	var phase atomic.Int32
	_, err = cluster.Subscribe("fake.CONSUMER.MSG.NEXT.S.C", func(m *nats.Msg) {
		at := strings.LastIndexByte(m.Reply, '.')
		inbox, pull := m.Reply[:at], m.Reply[at+1:]
		switch phase.Load() {
		case 0: // nothing is sent
			status(m.Reply, "Batch Completed", "4")
		case 1: // three of four are sent, two of them after the end
			require.NoError(t, cluster.Publish(m.Reply, []byte("one")))
			status(m.Reply, "Message Size Exceeds MaxBytes", "1")
			require.NoError(t, cluster.Publish(m.Reply, []byte("two")))
			require.NoError(t, cluster.Publish(m.Reply, []byte("three")))
		case 2: // the end of the earlier pull says nothing about this one
			n, _ := strconv.Atoi(pull)
			status(inbox+"."+strconv.Itoa(n-1), "Batch Completed", "0")
			require.NoError(t, cluster.Publish(m.Reply, []byte("four")))
		default: // the server forgets what it counted as sent, as after a change of leader
			status(m.Reply, "Batch Completed", "0")
		}
	})
	require.NoError(t, err)
	require.NoError(t, cluster.Flush())

	c := connect(t, Config{URL: server.URL(), APIPrefix: "fake"})
	p := &Puller{c: c, binding: Binding{Stream: "S", Consumer: "C"}, waits: newBackOff(2 * time.Second)}
	t.Cleanup(p.Close)
	var got []string
	each := func(taken *Taken) { got = append(got, string(taken.Body)) }
	require.Eventually(t, func() bool { // the connection's own beginning interrupts pulls
		return p.Pull(testContext(t), 4, each) == nil
	}, patience, time.Millisecond)
	phase.Store(1)
	require.NoError(t, p.Pull(testContext(t), 4, each))
	require.Equal(t, []string{"one", "two", "three"}, got)
	phase.Store(2)
	require.NoError(t, p.Pull(testContext(t), 1, each))
	require.Equal(t, []string{"one", "two", "three", "four"}, got)
	phase.Store(3)
	require.ErrorIs(t, p.Pull(testContext(t), 1, each), ErrInterrupted)
}
