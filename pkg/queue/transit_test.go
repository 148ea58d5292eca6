package queue

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

// tap is a TCP proxy before a server, whose answers can be held back: they come late, and none is lost.
type tap struct {
	address string
	mu      sync.Mutex
	open    *sync.Cond
	shut    bool
}

func tapBefore(t *testing.T, server string) *tap {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &tap{address: listener.Addr().String()}
	p.open = sync.NewCond(&p.mu)
	var running sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); p.hold(false); running.Wait() })
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			back, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				return
			}
			running.Go(func() { _, _ = io.Copy(back, client); _ = back.Close() })
			running.Go(func() { _, _ = io.Copy(p.held(client), back); _ = client.Close() })
		}
	})
	return p
}

func (p *tap) hold(shut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut = shut
	p.open.Broadcast()
}

// held writes to w while the tap is open.
func (p *tap) held(w io.Writer) io.Writer {
	return writerFunc(func(b []byte) (int, error) {
		p.mu.Lock()
		for p.shut {
			p.open.Wait()
		}
		p.mu.Unlock()
		return w.Write(b)
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// A call that lies in the network says so when it arrives, also behind heartbeats that lay there as well; the next
// one does not.
func TestTransitBoundsHowLongACallWasOnItsWay(t *testing.T) {
	t.Parallel()
	i := install(t, Config{AckWait: time.Minute})
	direct := i.server.URL()
	tap := tapBefore(t, strings.TrimPrefix(direct, "nats://"))
	conn, err := Connect(t.Context(), Config{URL: "nats://" + tap.address, Logger: i.dispatcher.log})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	binding, err := conn.Register(t.Context(), Registration{Pool: "p", ID: "e", Language: "go", Functions: []call.Function{{Name: "f"}}})
	require.NoError(t, err)
	puller, err := conn.Bind(t.Context(), binding)
	require.NoError(t, err)
	t.Cleanup(puller.Close)
	arrived := make(chan *Taken, 10)
	ctx, stop := context.WithCancel(t.Context())
	var pulling sync.WaitGroup
	pulling.Go(func() {
		for ctx.Err() == nil {
			_ = puller.Pull(ctx, 5, func(taken *Taken) { arrived <- taken })
		}
	})
	t.Cleanup(func() { stop(); pulling.Wait() })

	i.publish(t, i.dispatch("s", "f", 1, `{}`))
	first := <-arrived
	require.Less(t, first.Transit, pullSilence)
	require.NoError(t, first.Ack())

	tap.hold(true)
	shut := time.Now()
	<-time.After(1500 * time.Millisecond) // a heartbeat goes first
	i.publish(t, i.dispatch("s", "f", 2, `{}`))
	<-time.After(2500 * time.Millisecond)
	open := time.Now()
	tap.hold(false)
	late := <-arrived
	require.Greater(t, late.Transit, 2500*time.Millisecond)
	require.Less(t, late.Transit, time.Since(shut)+2*pullHeartbeat)
	require.NoError(t, late.Ack())

	require.Eventually(t, func() bool {
		i.publish(t, i.dispatch("s", "f", int(time.Since(open)), `{}`))
		taken := <-arrived
		return taken.Ack() == nil && taken.Transit < time.Since(open)
	}, patience, 10*time.Millisecond, "what is sent later is in time")
}
