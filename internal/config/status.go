package config

import (
	"context"
	"strings"
	"time"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// reporter tells what happened: Events, metrics, log.
type reporter struct {
	events events.EventRecorder
	now    func() time.Time
	// held are the holds that were logged already, so that each is logged once.
	held map[string]string
}

func newReporter(recorder events.EventRecorder, now func() time.Time) *reporter {
	return &reporter{events: recorder, now: now, held: map[string]string{}}
}

// report tells of one pass. Events are sent only for writes that were made.
func (r *reporter) report(ctx context.Context, o Observed, plan Plan, outcomes []outcome) {
	for _, out := range outcomes {
		if out.err != nil {
			r.refused(ctx, out)
			continue
		}
		r.made(ctx, out.write)
	}
	r.measure(o, plan)
	r.logHolds(ctx, plan)
}

func (r *reporter) made(ctx context.Context, w Write) {
	for _, e := range w.Events {
		r.events.Eventf(w.Workload.object, nil, e.Type, string(e.Reason), "Configure", "%s", e.Note)
	}
	writes.WithLabelValues("made").Inc()
	if !w.Rolls {
		return
	}
	rolls.WithLabelValues(w.Workload.Namespace, w.Workload.Kind).Inc()
	if first := w.Workload.Change.First; !first.IsZero() {
		latency.Observe(r.now().Sub(first).Seconds())
	}
	log.FromContext(ctx).Info("rolls", "workload", w.Workload.String(),
		"changed", strings.Join(shorten(w.Workload.Change.Keys), ", "), "hash", w.Workload.Template.Hash)
}

// refused logs a failed write, but not one that somebody else was faster than:
// that is looked at anew, in silence.
func (r *reporter) refused(ctx context.Context, out outcome) {
	if overtaken(out.err) {
		writes.WithLabelValues("overtaken").Inc()
		log.FromContext(ctx).V(1).Info("overtaken, looking again", "workload", out.write.Workload.String(), "error", out.err.Error())
		return
	}
	writes.WithLabelValues("failed").Inc()
	log.FromContext(ctx).Error(out.err, "write failed, trying again later", "workload", out.write.Workload.String())
}

// logHolds logs each hold when it begins or its sentence changes.
func (r *reporter) logHolds(ctx context.Context, plan Plan) {
	held := make(map[string]string, len(plan.Holds))
	for _, h := range plan.Holds {
		key := strings.Join(h.Path[1:], "/")
		held[key] = h.Message
		if r.held[key] != h.Message {
			log.FromContext(ctx).V(1).Info("waits", "workload", key, "reason", string(h.Reason), "why", h.Message)
		}
	}
	r.held = held
}

// measure brings the gauges up to date.
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
