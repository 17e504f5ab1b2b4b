package config

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// reporter reports what happened: Events, metrics, log.
type reporter struct {
	ring.Reporter
	ring.Gauges
	ring.Waits

	now func() time.Time
	// said are the messages of the Holds.
	said ring.Said
	// asReloader has rolls counted and reported by the names of Reloader, too.
	asReloader bool
}

func newReporter(recorder events.EventRecorder, o *Options) *reporter {
	if o.ReloaderMetrics {
		metrics.CountReloads()
	}
	return &reporter{Reporter: ring.Reporter{Events: recorder, Action: "Configure", Writes: metrics.ConfigWrites}, now: o.Now, asReloader: o.ReloaderMetrics}
}

// report reports one pass. Events are emitted only for writes that were made.
func (r *reporter) report(ctx context.Context, o *decision.Observed, p *decision.Plan, done *results) {
	for i := range *done {
		w := &(*done)[i]
		r.Wrote(ctx, w.Change, w.Err, "changed", strings.Join(w.Write.Workload.Change.Shortened(), ", "))
		if w.Err == nil {
			r.emit(&w.Write)
		}
		if r.asReloader && w.Write.Rolls && w.Write.Workload.Reloaded != nil && !ring.IsConflict(w.Err) {
			r.reloaded(w.Write.Workload, w.Err)
		}
	}
	r.measure(o, p)
	r.logHolds(ctx, p)
}

// reloaded counts and reports a write that rolls a workload as Reloader does.
func (r *reporter) reloaded(w *decision.Workload, err error) {
	metrics.Reloaded(w.Namespace, err)
	if err != nil {
		r.Warning(w.Object, decision.EventReloadFail, "%s %s was not rolled: %v", w.Kind, w.Name.Name, err)
		return
	}
	r.Normal(w.Object, decision.EventReloaded, "%s %s was rolled: %s", w.Kind, w.Name.Name, strings.Join(w.Change.Shortened(), ", "))
}

// outcomes are those that an Event says a workload's rollout has.
var outcomes = map[rollout.Reason]rollout.Outcome{
	decision.ReasonConfigFailed: rollout.OutcomeFailed, decision.ReasonConfigRolledBack: rollout.OutcomeRolledBack,
}

func (r *reporter) emit(w *decision.Write) {
	for _, e := range w.Events {
		emit := r.Normal
		if e.Type == corev1.EventTypeWarning {
			emit = r.Warning
		}
		emit(w.Workload.Object, e.Reason, "%s", e.Note)
		if outcome := outcomes[e.Reason]; outcome != "" {
			metrics.Rollouts.WithLabelValues(metrics.RingConfig, string(outcome)).Inc()
		}
	}
	if !w.Rolls {
		return
	}
	metrics.ConfigRolls.WithLabelValues(w.Workload.Namespace, w.Workload.Kind).Inc()
	if first := w.Workload.Change.First; !first.IsZero() {
		metrics.ConfigLatency.Observe(r.now().Sub(first).Seconds())
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
	metrics.ConfigTracked.Set(float64(count))
	shown := map[ring.Series]float64{}
	for _, h := range p.Holds {
		shown[ring.SeriesOf(metrics.ConfigWaiting, string(h.Reason))]++
	}
	r.Show(shown)
	r.Wait(metrics.RingConfig, o.Now, p.Holds)
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
