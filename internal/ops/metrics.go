package ops

import (
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/internal/runs"
	"github.com/callfan/callfan/pkg/call"
)

// unregistered stands for the names of functions that nobody has registered: they
// are free text of a model, and would make a series each.
const unregistered = "unregistered"

// Metrics counts what a dispatcher reports, in a registry of its own. It is a
// dispatcher.Observer. docs/metrics.md explains each.
type Metrics struct {
	registry *prometheus.Registry

	claimedTotal     *prometheus.CounterVec
	answeredTotal    *prometheus.CounterVec
	transitionsTotal *prometheus.CounterVec
	stageSeconds     *prometheus.HistogramVec
	ageSeconds       *prometheus.HistogramVec
	batchAnswers     prometheus.Histogram
	batchBytes       prometheus.Histogram
	requestsTotal    *prometheus.CounterVec
	requestSeconds   *prometheus.HistogramVec
	eventsTotal      *prometheus.CounterVec
	webhooksTotal    *prometheus.CounterVec
	runsTotal        *prometheus.CounterVec
	partitionsOwned  prometheus.Gauge
	sessionsServed   prometheus.Gauge

	ages   *ages
	parked atomic.Pointer[func() int]
	driven atomic.Pointer[func() int]
}

var (
	_ dispatcher.Observer = (*Metrics)(nil)
	_ runs.Observer       = (*Metrics)(nil)
)

// NewMetrics makes the metrics of a program of this version.
func NewMetrics(version string) *Metrics {
	m := &Metrics{
		registry:         prometheus.NewRegistry(),
		claimedTotal:     counters("calls_claimed_total", "Calls that were seen for the first time.", "function"),
		answeredTotal:    counters("calls_answered_total", "Calls for which a result was saved.", "function", "outcome", "reason"),
		transitionsTotal: counters("call_transitions_total", "Steps in the lives of calls.", "from", "to"),
		stageSeconds: histograms("call_stage_seconds", "Time that calls spent in a state before the next one.",
			prometheus.ExponentialBuckets(0.001, 2.5, 14), "stage"),
		ageSeconds: histograms("call_age_seconds", "Age of calls, since they were claimed, when they entered a state.",
			prometheus.ExponentialBuckets(0.001, 2.5, 14), "state"),
		batchAnswers: histogram("batch_answers", "Results in one accepted submission.",
			[]float64{1, 2, 4, 8, 16, 32, 64}),
		batchBytes: histogram("batch_bytes", "Bytes of one accepted submission.",
			prometheus.ExponentialBuckets(256, 4, 8)),
		requestsTotal: counters("api_requests_total", "Requests to the API, by what came back.", "operation", "class"),
		requestSeconds: histograms("api_request_seconds", "Time of requests to the API.",
			prometheus.ExponentialBuckets(0.005, 2, 13), "operation"),
		eventsTotal:     counters("events_total", "Rare events that operators watch.", "event"),
		webhooksTotal:   counters("webhooks_total", "OpenAI's webhooks, by what became of them.", "type", "result"),
		runsTotal:       counters("runs_total", "Runs of the Responses API that have ended.", "status"),
		partitionsOwned: gauge("partitions_owned", "Partitions that this replica owns."),
		sessionsServed:  gauge("sessions_served", "Sessions that this replica serves."),
		ages:            newAges(),
	}
	parked := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "callfan", Name: "calls_parked", Help: "Calls of this replica's sessions that wait for an operator.",
	}, func() float64 { return counted(&m.parked) })
	driven := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "callfan", Name: "runs_driven", Help: "Runs of the Responses API that this replica drives.",
	}, func() float64 { return counted(&m.driven) })
	build := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "callfan", Name: "build_info", Help: "1, with the version of the program as labels.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version()},
	}, func() float64 { return 1 })
	m.registry.MustRegister(m.claimedTotal, m.answeredTotal, m.transitionsTotal, m.stageSeconds, m.ageSeconds,
		m.batchAnswers, m.batchBytes, m.requestsTotal, m.requestSeconds, m.eventsTotal, m.webhooksTotal, m.runsTotal, m.partitionsOwned,
		m.sessionsServed, parked, driven, build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, event := range events {
		m.eventsTotal.WithLabelValues(event) // so that a rate shows the first one
	}
	for _, status := range []runs.Status{runs.Completed, runs.Incomplete, runs.Failed, runs.Stopped, runs.Cancelled} {
		m.runsTotal.WithLabelValues(string(status))
	}
	return m
}

// events are those that are shown before they happen.
var events = []string{
	dispatcher.EventTakeover, dispatcher.EventPartitionLost, dispatcher.EventInvalidOutcome,
	dispatcher.EventForgedOutcome, dispatcher.EventLateOutcome, dispatcher.EventUnknownOutcome,
	dispatcher.EventRebuilt, dispatcher.EventRepublished, dispatcher.EventReleased, dispatcher.EventRetried,
	dispatcher.EventParked, dispatcher.EventDecided, dispatcher.EventWithdrawn, dispatcher.EventLateResult,
	dispatcher.EventListRestored, dispatcher.EventSessionFound, dispatcher.EventCallFound,
	dispatcher.EventRecordRestored, dispatcher.EventCallMissed,
	dispatcher.EventResent, dispatcher.EventRelisted, dispatcher.EventRepairedText, dispatcher.EventSubstituted,
	dispatcher.EventOtherAction, dispatcher.EventAuthRefused, dispatcher.EventToolDrift,
	dispatcher.EventStuckCall, dispatcher.EventMovedCall, dispatcher.EventOrphanOutcome,
}

// reasons are those that become labels; executors may send others.
var reasons = []string{
	call.ReasonHandler, call.ReasonTimeout, call.ReasonPanic, call.ReasonCrashed, call.ReasonUnknownOutcome, call.ReasonNoExecutor,
	call.ReasonInvalidName, call.ReasonInvalidArguments, call.ReasonInvalidOutput, call.ReasonTooLarge,
	call.ReasonGaveUp, call.ReasonRefused, call.ReasonOperator, call.ReasonDeadline,
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "callfan", Name: name, Help: help}, labels)
}

func histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "callfan", Name: name, Help: help, Buckets: buckets}, labels)
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "callfan", Name: name, Help: help, Buckets: buckets})
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "callfan", Name: name, Help: help})
}

// Handler serves the metrics in Prometheus' formats.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry, EnableOpenMetrics: true, MaxRequestsInFlight: 4})
}

// Gatherer gives the metrics to programs that embed a dispatcher.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// Transition counts one step of one call.
func (m *Metrics) Transition(t dispatcher.Transition) {
	function := unregistered
	if t.Registered {
		function = strings.ToValidUTF8(t.Function, "\uFFFD")
	}
	m.transitionsTotal.WithLabelValues(stateLabel(t.From), stateLabel(t.To)).Inc()
	if t.From == call.Absent {
		m.claimedTotal.WithLabelValues(function).Inc()
	}
	if t.To == call.Succeeded || t.To == call.Failed {
		reason := t.Reason
		if !slices.Contains(reasons, reason) {
			reason = "other"
		}
		m.answeredTotal.WithLabelValues(function, string(t.To), reason).Inc()
	}
	if t.To.Saved() || t.To.Final() {
		m.ageSeconds.WithLabelValues(string(t.To)).Observe(t.Age.Seconds())
	}
	if entered, ok := m.ages.step(t.Key, t.Age, t.To.Final()); ok {
		m.stageSeconds.WithLabelValues(stateLabel(t.From)).Observe(max(0, t.Age-entered).Seconds())
	}
}

func stateLabel(s call.State) string {
	if s == call.Absent {
		return "new"
	}
	return string(s)
}

// CountParked has the number of parked calls asked from count, which must not block.
// Until then it is 0.
func (m *Metrics) CountParked(count func() int) { m.parked.Store(&count) }

// CountRuns has the number of runs that are driven asked from count, which must not block.
// Until then it is 0.
func (m *Metrics) CountRuns(count func() int) { m.driven.Store(&count) }

func counted(count *atomic.Pointer[func() int]) float64 {
	if count := count.Load(); count != nil {
		return float64((*count)())
	}
	return 0
}

// RunEnded counts the end of a run.
func (m *Metrics) RunEnded(status runs.Status) { m.runsTotal.WithLabelValues(string(status)).Inc() }

// Request counts one request to the API.
func (m *Metrics) Request(operation, class string, took time.Duration) {
	m.requestsTotal.WithLabelValues(operation, class).Inc()
	m.requestSeconds.WithLabelValues(operation).Observe(took.Seconds())
}

// Batch counts one accepted submission.
func (m *Metrics) Batch(answers, bytes int) {
	m.batchAnswers.Observe(float64(answers))
	m.batchBytes.Observe(float64(bytes))
}

// Count counts one of the rare events.
func (m *Metrics) Count(event string) { m.eventsTotal.WithLabelValues(event).Inc() }

// Webhook counts one webhook.
func (m *Metrics) Webhook(event, result string) { m.webhooksTotal.WithLabelValues(event, result).Inc() }

// Owned notes what this replica serves.
func (m *Metrics) Owned(partitions, sessions int) {
	m.partitionsOwned.Set(float64(partitions))
	m.sessionsServed.Set(float64(sessions))
}
