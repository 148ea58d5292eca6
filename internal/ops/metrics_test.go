package ops_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/internal/ops"
	"github.com/callfan/callfan/internal/runs"
	"github.com/callfan/callfan/pkg/call"
)

// exercise reports one of everything.
func exercise(m *ops.Metrics) {
	key := call.Key{Session: "sess_1", Turn: "turn_1", Call: "call_1"}
	step := func(from, to call.State, reason string, age time.Duration) {
		m.Transition(dispatcher.Transition{Key: key, Function: "f", Registered: true, From: from, To: to, Reason: reason, Age: age})
	}
	step(call.Absent, call.Seen, "", 0)
	step(call.Seen, call.Succeeded, call.ReasonHandler, 2*time.Second)
	step(call.Succeeded, call.Submitted, call.ReasonHandler, 2100*time.Millisecond)
	step(call.Submitted, call.Settled, "", 3*time.Second)
	m.Transition(dispatcher.Transition{
		Key: call.Key{Session: "s", Turn: "t", Call: "c"}, Function: "free text of a model",
		From: call.Absent, To: call.Failed, Reason: "made_up_by_an_executor",
	})
	m.Request("submit", "ok", 50*time.Millisecond)
	m.Batch(3, 1000)
	m.Count(dispatcher.EventResent)
	m.Owned(64, 7)
	m.CountParked(func() int { return 3 })
	m.Webhook("response.completed", "accepted")
	m.RunEnded(runs.Stopped)
	m.CountRuns(func() int { return 2 })
}

func samples(t *testing.T, m *ops.Metrics) string {
	t.Helper()
	b := setup(t, ops.Config{Metrics: m.Handler()})
	status, body := b.do(t, "GET", "/metrics", "")
	require.Equal(t, 200, status)
	return body
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	m := ops.NewMetrics("v1.2.3")
	exercise(m)
	body := samples(t, m)
	for _, line := range []string{
		`callfan_calls_claimed_total{function="f"} 1`,
		`callfan_calls_answered_total{function="f",outcome="succeeded",reason="handler"} 1`,
		`callfan_calls_answered_total{function="unregistered",outcome="failed",reason="other"} 1`,
		`callfan_runs_total{status="stopped"} 1`, `callfan_runs_total{status="failed"} 0`, `callfan_runs_driven 2`,
		`callfan_call_transitions_total{from="new",to="seen"} 1`,
		`callfan_call_transitions_total{from="submitted",to="settled"} 1`,
		`callfan_call_stage_seconds_sum{stage="seen"} 2`,
		`callfan_call_stage_seconds_count{stage="succeeded"} 1`,
		`callfan_call_age_seconds_sum{state="settled"} 3`,
		`callfan_batch_answers_sum 3`,
		`callfan_batch_bytes_sum 1000`,
		`callfan_api_requests_total{class="ok",operation="submit"} 1`,
		`callfan_api_request_seconds_count{operation="submit"} 1`,
		`callfan_events_total{event="resent"} 1`,
		`callfan_webhooks_total{result="accepted",type="response.completed"} 1`,
		`callfan_events_total{event="forged_outcome"} 0`,
		`callfan_partitions_owned 64`,
		`callfan_calls_parked 3`,
		`callfan_sessions_served 7`,
		`version="v1.2.3"`,
	} {
		require.Contains(t, body, line)
	}
	for _, id := range []string{"sess_1", "turn_1", "call_1", "free text", "made_up"} {
		require.NotContains(t, body, id)
	}
}

// TestStagesAreForgotten: calls that end elsewhere do not pile up.
func TestStagesAreForgotten(t *testing.T) {
	t.Parallel()
	m := ops.NewMetrics("")
	for i := range 200_000 {
		m.Transition(dispatcher.Transition{
			Key: call.Key{Session: "s", Turn: "t", Call: fmt.Sprint(i)}, From: call.Absent, To: call.Seen,
		})
	}
	m.Transition(dispatcher.Transition{Key: call.Key{Session: "s", Turn: "t", Call: "0"}, From: call.Seen, To: call.Succeeded, Age: time.Second})
	m.Transition(dispatcher.Transition{Key: call.Key{Session: "s", Turn: "t", Call: "199999"}, From: call.Seen, To: call.Succeeded, Age: time.Second})
	require.Contains(t, samples(t, m), `callfan_call_stage_seconds_count{stage="seen"} 1`, "the oldest is forgotten, the youngest is not")
}

var documented = regexp.MustCompile("(?m)^\\| `(callfan_[a-z_]+)` \\| ([a-z]+) \\| ([^|]*) \\|")

// TestMetricsPage: docs/metrics.md names every metric with its type and its labels,
// and none that does not exist.
func TestMetricsPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	var have []string
	for _, row := range documented.FindAllStringSubmatch(string(text), -1) {
		have = append(have, strings.Join(row[1:3], " ")+" "+strings.ReplaceAll(row[3], "`", ""))
	}
	m := ops.NewMetrics("test")
	exercise(m)
	slices.Sort(have)
	require.Equal(t, gathered(t, m.Gatherer()), have)
	for _, event := range regexp.MustCompile(`callfan_events_total\{event="([a-z_]+)"\}`).FindAllStringSubmatch(samples(t, m), -1) {
		require.Contains(t, string(text), "| `"+event[1]+"` |")
	}
}

// gathered lists name, type and labels of callfan's own metrics.
func gathered(t *testing.T, g prometheus.Gatherer) []string {
	t.Helper()
	families, err := g.Gather()
	require.NoError(t, err)
	var all []string
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "callfan_") {
			continue
		}
		var labels []string
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, label.GetName())
		}
		slices.Sort(labels)
		all = append(all, fmt.Sprintf("%s %s %s", family.GetName(), strings.ToLower(family.GetType().String()), strings.Join(labels, ", ")))
	}
	slices.Sort(all)
	return all
}
