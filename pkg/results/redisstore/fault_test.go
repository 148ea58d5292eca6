package redisstore_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
	"github.com/callfan/callfan/pkg/results/redisstore"
)

// lossyProxy forwards connections to a Redis. Once lose is set, the next answer
// to a script is not delivered: the script ran, and the connection breaks.
type lossyProxy struct {
	listener net.Listener
	target   string
	lose     atomic.Bool
	lost     atomic.Int64
	conns    sync.WaitGroup
}

func newLossyProxy(t *testing.T, target string) *lossyProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &lossyProxy{listener: listener, target: target}
	p.conns.Go(p.accept)
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		p.conns.Wait()
	})
	return p
}

func (p *lossyProxy) url() string { return "redis://" + p.listener.Addr().String() }

func (p *lossyProxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		var asked atomic.Bool
		p.conns.Go(func() { p.forward(server, client, func(b []byte) bool { return p.request(b, &asked) }) })
		p.conns.Go(func() { p.forward(client, server, func([]byte) bool { return p.answer(&asked) }) })
	}
}

func (p *lossyProxy) request(b []byte, asked *atomic.Bool) bool {
	if bytes.Contains(bytes.ToLower(b), []byte("evalsha")) {
		asked.Store(true)
	}
	return true
}

func (p *lossyProxy) answer(asked *atomic.Bool) bool {
	if asked.Load() && p.lose.CompareAndSwap(true, false) {
		p.lost.Add(1)
		return false
	}
	return true
}

// forward copies until an error, or until pass says no to what it read.
func (p *lossyProxy) forward(to, from net.Conn, pass func([]byte) bool) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && (!pass(buffer[:n])) {
			return
		}
		if _, werr := to.Write(buffer[:n]); err != nil || werr != nil {
			return
		}
	}
}

// TestALostAnswerChangesNothing makes each kind of request twice, on two
// installations: once in peace and once with the answer lost on the way, so that
// the client sends the script again. The answers must be the same.
func TestALostAnswerChangesNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testservers.Redis(t)
	proxy := newLossyProxy(t, server.Addr())
	peaceful := open(t, redisstore.Config{URL: server.URL(), Prefix: "peaceful"})
	lossy := open(t, redisstore.Config{URL: proxy.url(), Prefix: "lossy"})
	t.Cleanup(func() {
		require.NoError(t, peaceful.Close())
		require.NoError(t, lossy.Close())
	})

	var fence [2]uint64 // made of the clock, so not the same in both
	steps := []struct {
		name    string
		request func(s results.Store, which int) (any, error)
	}{
		{"acquire", func(s results.Store, which int) (any, error) {
			leases, err := s.Acquire(ctx, "a", []int{1, 2}, time.Minute)
			for i := range leases {
				fence[which] = leases[i].Fence
				leases[i].Fence = 0
			}
			return leases, err
		}},
		{"acquire again", func(s results.Store, which int) (any, error) {
			leases, err := s.Acquire(ctx, "a", []int{2}, time.Minute)
			return leases[0].Fence == fence[which], err
		}},
		{"acquire by another", func(s results.Store, _ int) (any, error) {
			return s.Acquire(ctx, "b", []int{1, 2}, time.Minute)
		}},
		{"release", func(s results.Store, _ int) (any, error) { return nil, s.Release(ctx, "a", []int{1}) }},
		{"acquire after release", func(s results.Store, which int) (any, error) {
			leases, err := s.Acquire(ctx, "b", []int{1, 2}, time.Minute)
			return []any{len(leases), leases[0].Fence > fence[which]}, err
		}},
		{"join", func(s results.Store, _ int) (any, error) { return s.Join(ctx, "a", time.Minute) }},
		{"attach", func(s results.Store, _ int) (any, error) { return nil, s.Attach(ctx, "sess_1") }},
		{"attached", func(s results.Store, _ int) (any, error) {
			sessions, _, err := s.Attached(ctx, call.Partition("sess_1", results.DefaultPartitions), "")
			return sessions, err
		}},
		{"claim", func(s results.Store, _ int) (any, error) {
			return timeless(s.Claim(ctx, 1, claims("call_1", "call_2", "call_3")))
		}},
		{"queue", func(s results.Store, _ int) (any, error) {
			return s.Move(ctx, 1, []results.Move{{Key: key("call_1"), To: call.Queued, Attempt: 1, Handover: 1}})
		}},
		{"note", func(s results.Store, _ int) (any, error) {
			return s.Move(ctx, 1, []results.Move{{Key: key("call_1"), To: call.Queued, Note: "e1 has it"}})
		}},
		{"complete", func(s results.Store, _ int) (any, error) {
			fences, c := completions([]byte(`"sunny"`), "call_1", "call_2", "call_9")
			c[0].Note = "by e1"
			answers, err := s.Complete(ctx, fences, c)
			return verdicts(answers), err
		}},
		{"supersede", func(s results.Store, _ int) (any, error) {
			fences, c := completions([]byte(`"rainy"`), "call_1")
			c[0].OutcomeID = "late"
			answers, err := s.Complete(ctx, fences, c)
			return []any{verdicts(answers), answers[0].Record.Result}, err
		}},
		{"get", func(s results.Store, _ int) (any, error) {
			return timeless(s.Get(ctx, []call.Key{key("call_1"), key("call_2")}))
		}},
		{"submit", func(s results.Store, _ int) (any, error) {
			return s.Move(ctx, 2, []results.Move{
				{Key: key("call_1"), To: call.Submitted},
				{Key: key("call_2"), To: call.Obsolete},
				{Key: key("call_3"), To: call.Submitted},
				{Key: key("call_9"), To: call.Queued},
			})
		}},
		{"settle", func(s results.Store, _ int) (any, error) {
			return s.Move(ctx, 2, []results.Move{{Key: key("call_1"), To: call.Settled}})
		}},
		{"fenced", func(s results.Store, _ int) (any, error) {
			return s.Move(ctx, 1, []results.Move{{Key: key("call_3"), To: call.Queued}})
		}},
		{"session", func(s results.Store, _ int) (any, error) { return timeless(s.Session(ctx, "sess_1")) }},
		{"detach", func(s results.Store, _ int) (any, error) { return nil, s.Detach(ctx, "sess_1") }},
	}
	for _, step := range steps {
		want, err := step.request(peaceful, 0)
		require.NoError(t, err, step.name)
		before := proxy.lost.Load()
		proxy.lose.Store(true)
		got, err := step.request(lossy, 1)
		require.NoError(t, err, step.name)
		require.Equal(t, before+1, proxy.lost.Load(), "%s: no answer was lost", step.name)
		require.Equal(t, want, got, step.name)
	}
}

func timeless(records []results.Record, err error) ([]results.Record, error) {
	for i := range records {
		records[i].Age, records[i].Since, records[i].ClaimedAt = 0, 0, time.Time{}
		for j := range records[i].History {
			records[i].History[j].At = time.Time{}
		}
	}
	return records, err
}

func verdicts(answers []results.Completed) []results.Verdict {
	var out []results.Verdict
	for _, a := range answers {
		out = append(out, a.Verdict)
	}
	return out
}
