package config

import (
	"context"
	"strings"
	"time"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// reporter reports what happened: Events, metrics, log.
type reporter struct {
	events events.EventRecorder
	now    func() time.Time
	// waiting are the messages that were logged, so that each is logged once.
	waiting map[string]string
}

func newReporter(recorder events.EventRecorder, now func() time.Time) *reporter {
	return &reporter{events: recorder, now: now, waiting: map[string]string{}}
}

// report reports one pass. Events are emitted only for writes that were made.
func (r *reporter) report(ctx context.Context, o Observed, plan Plan, results []result) {
	for _, result := range results {
		if result.err != nil {
			r.failed(ctx, result)
			continue
		}
		r.made(ctx, result.write)
	}
	r.measure(o, plan)
	r.logHolds(ctx, plan)
}

func (r *reporter) made(ctx context.Context, w Write) {
	for _, e := range w.Events {
		r.events.Eventf(w.Workload.Object, nil, e.Type, string(e.Reason), "Configure", "%s", e.Note)
	}
	writes.WithLabelValues("made").Inc()
	if !w.Rolls {
		return
	}
	rolls.WithLabelValues(w.Workload.Namespace, w.Workload.Kind).Inc()
	if first := w.Workload.Change.First; !first.IsZero() {
		latency.Observe(r.now().Sub(first).Seconds())
	}
	log.FromContext(ctx).Info("rolling", "workload", w.Workload.String(),
		"changed", strings.Join(shorten(w.Workload.Change.Keys), ", "), "hash", w.Workload.Template.Hash)
}

// failed logs a failed write, but not a conflict: it is decided again, in silence.
func (r *reporter) failed(ctx context.Context, result result) {
	name := result.write.Workload.String()
	if isConflict(result.err) {
		writes.WithLabelValues("conflict").Inc()
		log.FromContext(ctx).V(1).Info("conflict, observing again", "workload", name, "error", result.err.Error())
		return
	}
	writes.WithLabelValues("failed").Inc()
	log.FromContext(ctx).Error(result.err, "write failed, retrying later", "workload", name)
}

// logHolds logs each hold when it begins or its message changes.
func (r *reporter) logHolds(ctx context.Context, plan Plan) {
	messages := make(map[string]string, len(plan.Holds))
	for _, h := range plan.Holds {
		key := strings.Join(h.Path[1:], "/")
		messages[key] = h.Message
		if r.waiting[key] != h.Message {
			log.FromContext(ctx).V(1).Info("waiting", "workload", key, "reason", string(h.Reason), "message", h.Message)
		}
	}
	r.waiting = messages
}

// measure sets the gauges.
func (r *reporter) measure(o Observed, plan Plan) {
	count := 0
	for i := range o.Workloads {
		if o.Workloads[i].Settings.Tracked {
			count++
		}
	}
	tracked.Set(float64(count))
	waiting.Reset()
	for _, h := range plan.Holds {
		waiting.WithLabelValues(string(h.Reason)).Inc()
	}
}
