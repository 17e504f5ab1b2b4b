package hub

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/rollout"
)

// reporter tells what happened: Events, metrics, log.
type reporter struct {
	kind   *kind
	events events.EventRecorder
	now    func() time.Time
}

// report tells of one pass.
func (r *reporter) report(ctx context.Context, s *snapshot, p *pass, d *results, m *memory) {
	if d.err != nil {
		r.refused(ctx, r.kind.name, s.key.Name, d.err)
	}
	for i := range d.outcomes {
		out := &d.outcomes[i]
		if out.err != nil {
			r.refused(ctx, string(out.write.Act), out.write.Target(), out.err)
			continue
		}
		writes.WithLabelValues(r.kind.name, string(out.write.Act), "made").Inc()
		log.FromContext(ctx).Info("acts", "act", string(out.write.Act), "on", out.write.Target(), "revision", out.write.Revision)
	}
	if d.object != nil {
		writes.WithLabelValues(r.kind.name, r.kind.name, "made").Inc()
		log.FromContext(ctx).V(1).Info("writes the module", "permits", p.Permits, "moves", len(p.Status.Moves), "phase", p.Status.Phase)
		r.emit(s.object, d.object)
	}
	r.measure(s, p)
	r.logWait(ctx, p, m)
}

// refused logs a failed write, but not one that somebody else was faster than: that
// is looked at anew, in silence.
func (r *reporter) refused(ctx context.Context, act, name string, err error) {
	if isConflict(err) {
		writes.WithLabelValues(r.kind.name, act, "overtaken").Inc()
		log.FromContext(ctx).V(1).Info("overtaken, looking again", "act", act, "on", name, "error", err.Error())
		return
	}
	writes.WithLabelValues(r.kind.name, act, "failed").Inc()
	log.FromContext(ctx).Error(err, "write failed, trying again later", "act", act, "on", name)
}

// tell sends an Event for each thing that the module's status did not say before it
// was written and says now; so each is told once, whoever leads.
func (r *reporter) emit(before, after client.Object) {
	_, was := model.Parts(before)
	_, is := model.Parts(after)
	for i := range is.Stages {
		r.emitStage(after, was, is, &is.Stages[i])
	}
	switch {
	case was.RolledBack != is.RolledBack && is.RolledBack != "":
		r.event(after, corev1.EventTypeWarning, decision.ReasonRolledBack, "%s has failed: going back to %s", is.RolledBack, is.CurrentRevision)
	case was.CurrentRevision != is.CurrentRevision:
		r.event(after, corev1.EventTypeNormal, decision.EventComplete, "%s is on all clusters: %s", is.CurrentRevision, is.Clusters)
	case !isStalled(was) && isStalled(is):
		r.event(after, corev1.EventTypeWarning, reasons.RolloutStuck, "%s", is.WaitingFor)
	case isStalled(was) && !isStalled(is), isPaused(was) && !isPaused(is):
		r.event(after, corev1.EventTypeNormal, reasons.RolloutResumed, "the rollout goes on: %s clusters are up to date", is.Clusters)
	case !isPaused(was) && isPaused(is):
		r.event(after, corev1.EventTypeNormal, reasons.RolloutPaused, "%s", is.WaitingFor)
	}
}

func isPaused(s *v1alpha1.ModuleStatus) bool { return s.Phase == string(rollout.PhasePaused) }

func (r *reporter) emitStage(module client.Object, was, is *v1alpha1.ModuleStatus, stage *v1alpha1.StageStatus) {
	if stage.StartedAt == nil {
		return
	}
	before := v1alpha1.StageStatus{}
	for i := range was.Stages {
		if was.Stages[i].Name == stage.Name {
			before = was.Stages[i]
		}
	}
	started := before.StartedAt == nil || !before.StartedAt.Equal(stage.StartedAt)
	if started {
		r.event(module, corev1.EventTypeNormal, decision.EventStageStarted, "stage %s goes to %s", stage.Name, is.TargetRevision)
	}
	if stage.State == decision.StateComplete && (started || before.State != decision.StateComplete) {
		r.event(module, corev1.EventTypeNormal, decision.EventStageDone, "stage %s is done: %d of %d clusters are up to date", stage.Name, stage.Ready, stage.Total)
	}
	if stage.State == string(rollout.ReasonGate) && before.State != stage.State {
		r.event(module, corev1.EventTypeNormal, decision.EventGate, "%s", stage.Message)
	}
}

func (r *reporter) event(module client.Object, kind string, reason rollout.Reason, note string, args ...any) {
	r.events.Eventf(module, nil, kind, string(reason), "Roll", note, args...)
}

// logWait logs what a module waits for when that begins or its sentence changes.
func (r *reporter) logWait(ctx context.Context, p *pass, m *memory) {
	if p.Status.WaitingFor != m.waits {
		m.waits = p.Status.WaitingFor
		log.FromContext(ctx).V(1).Info("waits", "why", m.waits)
	}
}

// measure brings the gauges of a module up to date.
func (r *reporter) measure(s *snapshot, p *pass) {
	r.forget(s)
	if s.object == nil {
		return
	}
	namespace, name := s.key.Namespace, s.key.Name
	phases.WithLabelValues(r.kind.name, namespace, name, p.Status.Phase).Set(1)
	for reason, n := range countHolds(p.Holds) {
		waiting.WithLabelValues(r.kind.name, namespace, name, string(reason)).Set(float64(n))
	}
	if c := p.Status.Summary; c != nil {
		for state, n := range map[string]int32{
			"total": c.Total, "updated": c.Updated, "updating": c.Updating, "succeeded": c.Succeeded,
			"failed": c.Failed, "waiting": c.Waiting, "held": c.Held, "unreachable": c.Unreachable,
		} {
			clusters.WithLabelValues(r.kind.name, namespace, name, state).Set(float64(n))
		}
	}
}

// countHolds counts the holds by their reasons: there may be one for each of many clusters.
func countHolds(holds []rollout.Hold) map[rollout.Reason]int {
	counts := map[rollout.Reason]int{}
	for i := range holds {
		counts[holds[i].Reason]++
	}
	return counts
}

// forget removes the metrics of a module.
func (r *reporter) forget(s *snapshot) {
	labels := prometheus.Labels{kindLabel: r.kind.name, "namespace": s.key.Namespace, "module": s.key.Name}
	for _, gauge := range []*prometheus.GaugeVec{phases, clusters, waiting} {
		gauge.DeletePartialMatch(labels)
	}
}
