package hub

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// reporter reports what happened: Events, metrics, log.
type reporter struct {
	ring.Reporter

	kind *kind
}

func newReporter(k *kind, recorder events.EventRecorder) reporter {
	return reporter{Reporter: ring.Reporter{Events: recorder, Action: "Roll", Writes: metrics.FleetWritesOf(k.name)}, kind: k}
}

// report reports one pass.
func (r *reporter) report(ctx context.Context, s *snapshot, p *pass, done *results, m *memory) {
	for i := range done.Writes {
		w := &done.Writes[i]
		r.Wrote(ctx, w.Change, w.Err, "revision", w.Write.Revision)
	}
	if done.Err != nil || done.Written() {
		r.Wrote(ctx, ring.Change{Act: r.kind.name, Object: s.key.Name}, done.Err, "permits", p.Permits, "moves", len(p.Status.Moves), "phase", p.Status.Phase)
	}
	if done.Written() {
		r.emit(s.object, done.Object)
	}
	m.Show(r.gauges(s, p))
	if s.object != nil {
		m.Wait(metrics.RingFleet, s.Now, p.Holds)
	} else {
		m.Wait(metrics.RingFleet, s.Now, nil)
	}
	if m.IsNew("waits", p.Status.WaitingFor) {
		log.FromContext(ctx).V(1).Info("waits", "why", p.Status.WaitingFor)
	}
}

// emit sends an Event for each thing that the module's status did not say before it
// was written and says now, so that every change is reported once, whichever manager
// leads.
func (r *reporter) emit(before, after client.Object) {
	_, was := model.Parts(before)
	_, is := model.Parts(after)
	for i := range is.Stages {
		r.emitStage(after, was, is, &is.Stages[i])
	}
	if awaits(was) != awaits(is) && awaits(is) != "" {
		r.Warning(after, rollout.ReasonRemovalApproval, "%d clusters no longer match spec.selector, more than maxRemoved allows; to approve: %s%d",
			is.Removal.Clusters, model.ApproveRemovals(r.kind.name, after.GetNamespace(), after.GetName()), is.Removal.Clusters)
	}
	if now := silence(is); now != "" && now != silence(was) {
		r.Warning(after, outcome.ReasonUnreachable, "%s", now)
	}
	metrics.Ended(metrics.RingFleet, past(was.History), past(is.History))
	switch {
	case was.RolledBack != is.RolledBack && is.RolledBack != "" && is.CurrentRevision != "":
		r.Warning(after, decision.ReasonRolledBack, "%s failed: rolling back to %s", is.RolledBack, is.CurrentRevision)
	case was.CurrentRevision != is.CurrentRevision:
		r.Normal(after, decision.EventComplete, "%s is on all clusters: %s", is.CurrentRevision, is.Clusters)
	default:
		r.Turned(after, courseOf(was), courseOf(is))
	}
}

func past(history []v1alpha1.PastRollout) []metrics.Past {
	rollouts := make([]metrics.Past, len(history))
	for i := range history {
		r := &history[i]
		rollouts[i] = metrics.Past{ID: r.Revision + " " + r.StartedAt.String(), Outcome: r.Outcome}
		if r.FinishedAt != nil {
			rollouts[i].Took = r.FinishedAt.Sub(r.StartedAt.Time)
		}
	}
	return rollouts
}

// silence is what is said of a cluster that does not answer, if that is what the rollout waits
// for.
func silence(s *v1alpha1.ModuleStatus) string {
	ready := apimeta.FindStatusCondition(s.Conditions, ring.ConditionReady)
	if ready == nil || ready.Reason != string(outcome.ReasonUnreachable) {
		return ""
	}
	return s.WaitingFor
}

func courseOf(s *v1alpha1.ModuleStatus) ring.Course {
	return ring.Course{
		Stalled: isStalled(s), Paused: s.Phase == string(rollout.PhasePaused),
		Message: s.WaitingFor, Progress: s.Clusters + " clusters are up to date",
	}
}

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
		r.Normal(module, decision.EventStageStarted, "stage %s is updating to %s", stage.Name, is.TargetRevision)
	}
	if stage.State == decision.StateComplete && (started || before.State != decision.StateComplete) {
		r.Normal(module, decision.EventStageDone, "stage %s is complete: %d of %d clusters are up to date", stage.Name, stage.Ready, stage.Total)
	}
	if stage.State == string(rollout.ReasonGate) && before.State != stage.State {
		r.Normal(module, decision.EventGate, "%s", stage.Message)
	}
}

// gauges are what the metrics of a module show, nothing of one that is gone.
func (r *reporter) gauges(s *snapshot, p *pass) map[ring.Series]float64 {
	shown := map[ring.Series]float64{}
	if s.object == nil {
		return shown
	}
	of := func(gauge *prometheus.GaugeVec, label string) ring.Series {
		return ring.SeriesOf(gauge, r.kind.name, s.key.Namespace, s.key.Name, label)
	}
	shown[of(metrics.FleetPhase, p.Status.Phase)] = 1
	for reason, n := range countHolds(p.Holds) {
		shown[of(metrics.FleetWaiting, string(reason))] = float64(n)
	}
	if c := p.Status.Summary; c != nil {
		for state, n := range map[string]int32{
			"total": c.Total, "updated": c.Updated, "updating": c.Updating, "succeeded": c.Succeeded,
			"failed": c.Failed, "waiting": c.Waiting, "held": c.Held, "unreachable": c.Unreachable,
		} {
			shown[of(metrics.FleetClusters, state)] = float64(n)
		}
	}
	return shown
}

// countHolds counts the holds by their reasons: there may be one for each of many clusters.
func countHolds(holds []rollout.Hold) map[rollout.Reason]int {
	counts := map[rollout.Reason]int{}
	for i := range holds {
		counts[holds[i].Reason]++
	}
	return counts
}
