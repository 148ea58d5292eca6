package conformance

import (
	"crypto/tls"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/callfan/callfan/pkg/queue"
)

// tlsScene has a server that takes TLS with certificates on both sides, and users by JWT.
func tlsScene() scene {
	var trusted, foreign *authority
	var greeted atomic.Int64
	var creds string
	asks := func(ca *authority) []string {
		return []string{
			"NATS_CA=" + ca.file("ca.pem"), "NATS_CERT=" + trusted.file("executor.pem"), "NATS_KEY=" + trusted.file("executor-key.pem"),
			"NATS_CREDS=" + creds,
		}
	}
	return scene{
		name:    "tls",
		ordered: true,
		act: func(t *trial) {
			var err error
			trusted, err = newAuthority(t.file("trusted"))
			t.must(err, "make an authority")
			foreign, err = newAuthority(t.file("foreign"))
			t.must(err, "make another authority")
			t.must(trusted.issue("server"), "issue a certificate")
			t.must(trusted.issue("executor"), "issue a certificate")
			settings, err := trusted.tls("server")
			t.must(err, "use a certificate")
			settings.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { greeted.Add(1); return nil, nil }
			operator, err := newOperator()
			t.must(err, "make an operator")
			creds = t.file("executor.creds")
			t.must(operator.admit(creds), "make a user")
			t.config.server = func(o *server.Options) {
				o.TLS, o.TLSConfig, o.TLSVerify, o.TLSTimeout = true, settings, true, patience.Seconds()
				o.TrustedKeys, o.SystemAccount, o.AccountResolver = []string{operator.trusted}, operator.system, &operator.accounts
			}
			t.config.dispatcher = queue.Config{
				CAFile: trusted.file("ca.pem"), CertFile: trusted.file("executor.pem"), KeyFile: trusted.file("executor-key.pem"), CredsFile: creds,
			}
			t.serve()
		},
		checks: []check{
			full("tls/credentials", func(t *trial) {
				p := t.start(asks(trusted)...)
				t.succeeds(t.call("echo", `{"a":1}`), `{"a":1}`)
				t.stop(p)
			}),
			full("tls/foreign-authority", func(t *trial) {
				before := greeted.Load()
				p := t.launch(asks(foreign)...)
				t.eventually(startWithin, func() bool { return greeted.Load() > before || p.gone() }, "the executor did not try to connect")
				if !t.until(settleTime, func() bool { return greeted.Load() > before }) {
					t.failf("the executor ended (%s) before it tried to connect", p.status())
				}
				t.never(time.Second, func() bool { return t.registeredSince(p.began) },
					"the executor took a server whose certificate is not signed by the authority of NATS_CA")
				p.kill()
			}),
		},
	}
}
