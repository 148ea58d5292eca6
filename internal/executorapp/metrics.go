package executorapp

import (
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/callfan/callfan/pkg/executor"
)

// metrics counts what an executor reports, in a registry of its own.
type metrics struct {
	registry  *prometheus.Registry
	running   *prometheus.GaugeVec
	total     *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	abandoned *prometheus.CounterVec
}

var _ executor.Observer = (*metrics)(nil)

func newMetrics(version string) *metrics {
	const namespace, subsystem = "callfan", "executor"
	m := &metrics{
		registry: prometheus.NewRegistry(),
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "calls_running", Help: "Calls whose function is running.",
		}, []string{"function"}),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "calls_total", Help: "Deliveries of calls that were ended, by what was reported and why.",
		}, []string{"function", "outcome", "reason"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "call_seconds", Help: "Time from the delivery of a call to its end, for calls that were run.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 14),
		}, []string{"function"}),
		abandoned: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "handlers_abandoned_total", Help: "Handlers that did not return after their time was over.",
		}, []string{"function"}),
	}
	build := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "1, with the version of the program as labels.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version()},
	}, func() float64 { return 1 })
	m.registry.MustRegister(m.running, m.total, m.seconds, m.abandoned, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry, EnableOpenMetrics: true, MaxRequestsInFlight: 4})
}

func (m *metrics) Started(function string) { m.running.WithLabelValues(function).Inc() }

func (m *metrics) Finished(f executor.Finish) {
	outcome := string(f.Kind)
	if outcome == "" {
		outcome = "none"
	}
	m.total.WithLabelValues(f.Function, outcome, f.Reason).Inc()
	if f.Ran {
		m.running.WithLabelValues(f.Function).Dec()
		m.seconds.WithLabelValues(f.Function).Observe(f.Took.Seconds())
	}
}

func (m *metrics) Abandoned(function string) { m.abandoned.WithLabelValues(function).Inc() }
