package conformance

import (
	"time"

	"github.com/nats-io/nats.go"
)

// restartScene starts the executor before there is a server, and takes it away later.
func restartScene() scene {
	var running *placed
	return scene{
		name:    "restart",
		config:  rigConfig{refresh: 2 * time.Minute}, // so that nothing heals by itself
		ordered: true,
		act: func(t *trial) {
			p := t.launch()
			t.never(1500*time.Millisecond, p.gone, "the executor ended because NATS was not there yet")
			t.startServer()
			t.never(time.Second, p.gone, "the executor ended because no dispatcher was there yet")
			t.undecided(2*time.Second, p)
			t.dispatch()
			t.registered(p)
			t.succeeds(t.call("echo", `{"a":1}`), `{"a":1}`)
			running = t.call("sleep", `{"ms":2500}`)
			t.started(running)
			t.server.Stop()
			pause(t.ctx, time.Second)
			t.startServer()
		},
		checks: []check{
			core("registration/waits-for-a-dispatcher", func(*trial) {}),
			core("reconnect/started-before-the-server", func(*trial) {}),
			core("reconnect/running-call", func(t *trial) {
				t.eventually(2*patience, func() bool { return len(t.reported(running)) > 0 }, "no outcome of the call that ran during the restart")
				t.is(t.outcome(running), "slept")
				t.runs(running, 1)
			}),
			core("reconnect/serves-again", func(t *trial) {
				p := t.call("echo", `{"b":2}`)
				t.succeeds(p, `{"b":2}`, 2*patience)
			}),
			core("reconnect/consumer-vanished", func(t *trial) {
				t.must(t.conn.JetStream().DeleteConsumer(t.ctx, "FN_CALLS", "pool_"+pool), "delete the pool's consumer")
				p := t.call("echo", `{"c":3}`)
				t.succeeds(p, `{"c":3}`, patience)
			}),
		},
	}
}

// undecided answers registrations for a while as dispatchers do that cannot decide.
func (t *trial) undecided(d time.Duration, p *process) {
	nc, err := nats.Connect(t.url())
	t.must(err, "connect")
	defer nc.Close()
	asked := 0
	_, err = nc.Subscribe("fn.register.>", func(m *nats.Msg) {
		asked++
		if asked%2 == 0 {
			_ = m.Respond([]byte(`{"ok":`))
			return
		}
		_ = m.Respond([]byte(`{"ok":false,"error":{"code":"unavailable","message":"the registry cannot be read now; ask again"}}`))
	})
	t.must(err, "answer registrations")
	t.never(d, p.gone, "the executor ended because a dispatcher could not decide about its registration; want that it asks again")
}
