package queue

import (
	"cmp"
	"fmt"
	"strings"
)

// Permissions are the subjects that a NATS user has to be allowed.
type Permissions struct {
	Publish   []string `json:"publish"`
	Subscribe []string `json:"subscribe"`
}

// Export is what the account with the streams offers to an executor's account.
type Export struct {
	// Subject is the one in the account with the streams, Local the one under which the
	// executor's account imports it.
	Subject string `json:"subject"`
	Local   string `json:"local"`
	// Stream says that messages flow to the executor; otherwise it is a service, which
	// the executor asks.
	Stream bool `json:"stream,omitempty"`
	// Replies says that one request may get several replies.
	Replies bool `json:"replies,omitempty"`
}

// ExecutorPermissions are what the executors of a pool need with these functions, and
// nothing more. Of cfg it uses the Prefix, the APIPrefix and the InboxPrefix, which
// defaults to _INBOX_<pool>: replies for one pool must be out of reach of others.
func ExecutorPermissions(cfg Config, pool string, functions []string) (Permissions, error) {
	exports, err := ExecutorExports(cfg, pool, functions)
	if err != nil {
		return Permissions{}, err
	}
	inbox := cmp.Or(cfg.InboxPrefix, "_INBOX_"+pool)
	if err := validSubject(inbox); err != nil {
		return Permissions{}, err
	}
	granted := Permissions{Subscribe: []string{inbox + ".>"}}
	for _, export := range exports {
		if export.Stream {
			granted.Subscribe = append(granted.Subscribe, export.Local)
		} else {
			granted.Publish = append(granted.Publish, export.Local)
		}
	}
	return granted, nil
}

// ExecutorExports are what the account with the streams has to export to an account
// that holds nothing but the executors of a pool with these functions. The account
// imports the JetStream API under cfg.APIPrefix, since $JS.API leads to its own.
func ExecutorExports(cfg Config, pool string, functions []string) ([]Export, error) {
	cfg = cfg.WithDefaults()
	switch {
	case !validPrefix.MatchString(cfg.Prefix):
		return nil, fmt.Errorf("queue: prefix %q: use 1 to 32 of A-Z a-z 0-9 _ -", cfg.Prefix)
	case !validPool.MatchString(pool):
		return nil, fmt.Errorf("queue: %s", poolRule(pool))
	case len(functions) == 0:
		return nil, fmt.Errorf("queue: pool %q: %w: there is none", pool, ErrInvalidFunction)
	}
	if err := validSubject(cfg.APIPrefix); err != nil {
		return nil, err
	}
	names := names{cfg.Prefix}
	same := func(subject string) Export { return Export{Subject: subject, Local: subject} }
	api := func(request string) Export {
		request += "." + names.calls() + "." + poolDurable(pool)
		return Export{Subject: defaultAPIPrefix + "." + request, Local: cfg.APIPrefix + "." + request}
	}
	var exports, cancels []Export
	for _, function := range functions {
		token, err := functionToken(function)
		if err != nil {
			return nil, err
		}
		exports = append(exports, same(names.register(token)), same(names.outcome(token)), same(names.resultsOf(token)))
		cancels = append(cancels, Export{Subject: names.cancel(token), Local: names.cancel(token), Stream: true})
	}
	next := api("CONSUMER.MSG.NEXT")
	next.Replies = true
	exports = append(exports, api("CONSUMER.INFO"), next)
	for _, ack := range names.acks(pool) {
		exports = append(exports, same(ack))
	}
	return append(exports, cancels...), nil
}

// validSubject refuses what would be several subjects, or none, in a permission.
func validSubject(subject string) error {
	for part := range strings.SplitSeq(subject, ".") {
		if part == "" || strings.ContainsAny(part, "*> \t\r\n,'\"\\") {
			return fmt.Errorf("queue: subject %q: use parts with dots between them, without wildcards, spaces and quotes", subject)
		}
	}
	return nil
}

// resultsOf are the result subjects of a function, of all partitions.
func (n names) resultsOf(token string) string { return n.prefix + ".result." + token + ".>" }

// acks are the subjects on which the calls of a pool are acknowledged: those of today, and
// those with domain and account in them.
func (n names) acks(pool string) []string {
	consumer := "." + n.calls() + "." + poolDurable(pool) + ".>"
	return []string{"$JS.ACK" + consumer, "$JS.ACK.*.*" + consumer}
}
