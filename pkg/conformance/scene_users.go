package conformance

import (
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/queue"
)

const inbox = "_INBOX_conformance"

// userScene has users: those that may do what an executor has to do, one by a password and
// one by an nkey, and those that lack a permission.
func userScene() scene {
	allowed := asUser("allowed")
	var seed string
	return scene{
		name:    "users",
		ordered: true,
		config: rigConfig{users: []*server.User{
			{Username: dispatcher, Password: dispatcher},
			executorUser("allowed", ""),
			executorUser("denied", "fn.register.echo"),
			executorUser("mute", "fn.result.fail.>"),
		}},
		act: func(t *trial) {
			seed = t.file("executor.nk")
			id, err := newSeed(seed)
			t.must(err, "make an nkey")
			t.config.server = func(o *server.Options) {
				o.Nkeys = []*server.NkeyUser{{Nkey: id, Permissions: executorUser("", "").Permissions}}
			}
			t.serve()
		},
		checks: []check{
			full("permissions/no-more-than-needed", func(t *trial) {
				p := t.start(allowed...)
				t.succeeds(t.call("echo", `{"a":1}`), `{"a":1}`)
				q := t.call("sleep", `{"ms":20000}`)
				t.started(q)
				t.cancel(q)
				t.dropped(q, 5*time.Second)
				u := t.call("pay_blind", `{}`, uncertain())
				t.fails(u, call.ReasonUnknownOutcome)
				t.lookedUp(u)
				if text := p.text(); strings.Contains(strings.ToLower(text), "permissions violation") {
					t.failf("the executor wanted more than it is allowed")
				}
				t.stop(p)
			}),
			full("permissions/denied", func(t *trial) {
				p := t.launch(asUser("denied")...)
				t.eventually(patience, func() bool { return strings.Contains(p.text(), "fn.register.echo") },
					"the executor does not say that the subject fn.register.echo is denied to it")
				p.kill()
			}),
			full("permissions/denied-result", func(t *trial) {
				p := t.start(asUser("mute")...)
				mute := t.call("fail", `{"text":"no"}`)
				t.eventually(patience, func() bool { return strings.Contains(p.text(), "fn.result.fail.") },
					"the executor does not say that the subject of its outcome is denied to it")
				if len(t.sent(mute, "+ACK")) > 0 || !t.queued(mute) {
					t.failf("a call whose outcome was refused was acknowledged")
				}
				t.succeeds(t.call("echo", `{"a":1}`), `{"a":1}`)
				p.kill()
			}),
			full("permissions/nkey", func(t *trial) {
				p := t.start("NATS_NKEY="+seed, "CONFORMANCE_INBOX_PREFIX="+inbox)
				t.succeeds(t.call("echo", `{"a":1}`), `{"a":1}`)
				t.stop(p)
			}),
			full("registration/refused", registrationRefused),
		},
	}
}

func asUser(name string) []string {
	return []string{"NATS_USER=" + name, "NATS_PASSWORD=" + name, "CONFORMANCE_INBOX_PREFIX=" + inbox}
}

// executorUser has the permissions of docs/protocol.md, but for one subject.
func executorUser(name, denied string) *server.User {
	publish := []string{
		"$JS.API.CONSUMER.INFO.FN_CALLS.pool_" + pool, "$JS.API.CONSUMER.MSG.NEXT.FN_CALLS.pool_" + pool,
		"$JS.ACK.FN_CALLS.pool_" + pool + ".>", "$JS.ACK.*.*.FN_CALLS.pool_" + pool + ".>",
	}
	subscribe := []string{inbox + ".>"}
	for _, f := range functions {
		token := call.Token(f.name)
		publish = append(publish, "fn.outcome."+token, "fn.result."+token+".>", "fn.register."+token)
		subscribe = append(subscribe, "fn.cancel."+token)
	}
	publish = slices.DeleteFunc(publish, func(subject string) bool { return subject == denied })
	return &server.User{Username: name, Password: name, Permissions: &server.Permissions{
		Publish: &server.SubjectPermission{Allow: publish}, Subscribe: &server.SubjectPermission{Allow: subscribe},
	}}
}

// registrationRefused has every function belong to another pool.
func registrationRefused(t *trial) {
	const prefix = "taken_"
	var taken []call.Function
	for _, f := range functions {
		t.must(t.registry.Forget(t.ctx, f.name), "forget the executor's functions")
		taken = append(taken, call.Function{Name: f.name})
	}
	_, err := t.conn.Register(t.ctx, queue.Registration{Pool: prefix + "pool", Functions: taken, ID: "the suite"})
	t.must(err, "register the functions for another pool")
	p := t.launch(asUser("allowed")...)
	t.eventually(patience, p.gone, "the executor goes on although its functions belong to another pool")
	if p.cmd.ProcessState.ExitCode() == 0 {
		t.failf("the executor ended with status 0 although its functions belong to another pool")
	}
	if !strings.Contains(p.text(), prefix+"pool") {
		t.failf("the executor does not say what the dispatcher answered: its functions belong to pool %spool", prefix)
	}
}
