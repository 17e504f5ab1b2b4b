package config

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/ring"
)

// reporter reports what happened: Events, metrics, log.
type reporter struct {
	ring.Reporter
	ring.Gauges

	now func() time.Time
	// said are the messages of the Holds.
	said ring.Said
}

func newReporter(recorder events.EventRecorder, now func() time.Time) *reporter {
	return &reporter{Reporter: ring.Reporter{Events: recorder, Action: "Configure", Writes: writes}, now: now}
}

// report reports one pass. Events are emitted only for writes that were made.
func (r *reporter) report(ctx context.Context, o *decision.Observed, p *decision.Plan, done *results) {
	for i := range *done {
		w := &(*done)[i]
		r.Wrote(ctx, w.Change, w.Err, "changed", strings.Join(w.Write.Workload.Change.Shortened(), ", "))
		if w.Err == nil {
			r.emit(&w.Write)
		}
	}
	r.measure(o, p)
	r.logHolds(ctx, p)
}

func (r *reporter) emit(w *decision.Write) {
	for _, e := range w.Events {
		emit := r.Normal
		if e.Type == corev1.EventTypeWarning {
			emit = r.Warning
		}
		emit(w.Workload.Object, e.Reason, "%s", e.Note)
	}
	if !w.Rolls {
		return
	}
	rolls.WithLabelValues(w.Workload.Namespace, w.Workload.Kind).Inc()
	if first := w.Workload.Change.First; !first.IsZero() {
		latency.Observe(r.now().Sub(first).Seconds())
	}
}

// measure sets the gauges.
func (r *reporter) measure(o *decision.Observed, p *decision.Plan) {
	count := 0
	for i := range o.Workloads {
		if o.Workloads[i].Settings.Tracked {
			count++
		}
	}
	tracked.Set(float64(count))
	shown := map[ring.Series]float64{}
	for _, h := range p.Holds {
		shown[ring.SeriesOf(waiting, string(h.Reason))]++
	}
	r.Show(shown)
}

// logHolds logs each hold when it begins or its message changes.
func (r *reporter) logHolds(ctx context.Context, p *decision.Plan) {
	said := ring.Said{}
	for _, h := range p.Holds {
		key := strings.Join(h.Path[1:], "/")
		if r.said.IsNew(key, h.Message) {
			log.FromContext(ctx).V(1).Info("waiting", "workload", key, "reason", string(h.Reason), "message", h.Message)
		}
		said.IsNew(key, h.Message)
	}
	r.said = said
}

// WritesMetric counts writes to workloads by act and result; Events are not among them.
const WritesMetric = "spillway_config_writes_total"

var (
	tracked = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "spillway_config_tracked_workloads",
		Help: "Workloads that are rolled when their config changes.",
	})
	waiting = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "spillway_config_waiting_workloads",
		Help: "Workloads that are out of date and not rolled now, by reason.",
	}, []string{"reason"})
	configChanges = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "spillway_config_changes_total",
		Help: "Observed changes of a workload's config, before coalescing.",
	})
	rolls = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "spillway_config_rolls_total",
		Help: "Workloads rolled by writing their hash.",
	}, []string{"namespace", "kind"})
	writes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: WritesMetric,
		Help: "Writes to workloads, by act (Roll, Record, Free) and result: made, conflict or failed.",
	}, []string{"act", "result"})
	latency = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "spillway_config_change_to_write_seconds",
		Help:    "Seconds from the first observed change to the write that rolls the workload.",
		Buckets: []float64{0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600},
	})
)

func init() { //nolint:gochecknoinits // the documented use of the registry of controller-runtime
	metrics.Registry.MustRegister(tracked, waiting, configChanges, rolls, writes, latency)
}
