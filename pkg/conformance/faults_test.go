package conformance_test

import (
	"regexp"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/programtest"
	"github.com/callfan/callfan/pkg/conformance"
	"github.com/callfan/callfan/pkg/conformance/conformancetest"
)

// An executor on the bare protocol passes the core: the suite asks for nothing that only
// the Go SDK does.
func TestBareExecutor(t *testing.T) {
	t.Parallel()
	conformancetest.Run(t, conformance.Executor{
		Command: programtest.Build(t, "pkg/conformance/internal/faulty"), Level: conformance.LevelCore,
	})
}

// Each fault fails the test that is about it; without it, TestBareExecutor and TestNoFault
// say, that test passes.
func TestFaultsAreNoticed(t *testing.T) {
	t.Parallel()
	faulty := programtest.Build(t, "pkg/conformance/internal/faulty")
	faults := map[string]string{
		"acks-first":                "outcomes/ack-after-stored",
		"reports-once":              "outcomes/ack-after-stored",
		"no-lease":                  "leases/waiting-handler",
		"blocked-lease":             "leases/blocking-handler",
		"no-look-up":                "redelivery/answered",
		"forgets-ack":               "redelivery/answered",
		"asks-once":                 "redelivery/asks-again",
		"runs-all-again":            "redelivery/unknown-outcome",
		"ignores-choice":            "redelivery/choice-of-the-dispatcher",
		"no-crash-limit":            "redelivery/crash-limit",
		"never-verifies":            "verify/done",
		"random-id":                 "failures/business",
		"naks":                      "arguments/plain",
		"keeps-nonce":               "failures/success-after-retries",
		"after-in-seconds":          "failures/retry-delay",
		"starts-late":               "failures/deadline-passed",
		"no-timeout":                "failures/timeout",
		"any-protocol":              "calls/other-protocol",
		"runs-no-call":              "calls/invalid",
		"runs-twice":                "calls/delivered-again-while-running",
		"key-of-the-attempt":        "calls/idempotency-key",
		"re-encodes":                "arguments/numbers",
		"trims":                     "outputs/text-white-space",
		"serialises-twice":          "outputs/object",
		"no-value-is-a-text":        "outputs/nothing",
		"drops-large":               "outputs/too-large",
		"ignores-cancel":            "cancel/running",
		"more-at-once":              "concurrency/bound",
		"greedy":                    "concurrency/pulls",
		"exit-status":               "stop/idle",
		"stop-drops":                "stop/finishes-what-runs",
		"no-server-no-executor":     "reconnect/started-before-the-server",
		"no-reconnect":              "reconnect/serves-again",
		"wrong-policy":              "registration/functions",
		"registers-once":            "registration/repeated",
		"no-dispatcher-no-executor": "registration/waits-for-a-dispatcher",
		"waits-for-the-consumer":    "reconnect/consumer-vanished",
		"takes-any-standing":        "redelivery/asks-again",
		"takes-no-for-final":        "registration/waits-for-a-dispatcher",
		"hides-refusals":            "permissions/denied-result",
		"logs-arguments":            "logs/no-secrets",
		"trusts-its-clock":          "stood-still/unknown-outcome", // always
		"trusts-the-network":        "late/unknown-outcome",        // always
		"few-heartbeats":            "leases/heartbeats",           // always
		"silent-denial":             "permissions/denied",
		"no-nkey":                   "permissions/nkey",
		"no-creds":                  "tls/credentials",
		"trusts-every-server":       "tls/foreign-authority",
	}
	// Most of the time is spent in waits that a fault does not end: many at once.
	slots := make(chan struct{}, 10)
	var group sync.WaitGroup
	for fault, test := range faults {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			e := conformance.Executor{Command: faulty, Env: []string{"FAULT=" + fault}, Only: regexp.MustCompile("^" + test + "$")}
			report, err := e.Check(t.Context())
			if assert.NoError(t, err, fault) {
				assert.Equal(t, []string{test}, report.Names(conformance.Failed), "%s: %+v", fault, report.Results)
			}
		})
	}
	group.Wait()
}

// Without a fault, the tests of level full that the faults fail do pass.
func TestNoFault(t *testing.T) {
	t.Parallel()
	e := conformance.Executor{Command: programtest.Build(t, "pkg/conformance/internal/faulty"), Only: regexp.MustCompile(
		`^(verify/done|calls/delivered-again-while-running|arguments/numbers|outputs/(text-white-space|object|nothing|too-large)|cancel/running|permissions/(denied|nkey)|tls/(credentials|foreign-authority)|logs/no-secrets)$`,
	)}
	report, err := e.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, report.Names(conformance.Failed), "%+v", report.Results)
	require.Len(t, report.Names(conformance.Passed), 13)
}
