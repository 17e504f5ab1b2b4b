package span

import (
	"strconv"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/notify/subject"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/tracing/identity"
	"github.com/spillway-dev/spillway/rollout"
)

// Of are the spans of all rollouts that the status of an object has, those that have not ended
// among them.
func Of(obj client.Object) []Span {
	switch o := obj.(type) {
	case *v1alpha1.RolloutGroup:
		return group(o)
	case *v1alpha1.ConfigPolicy:
		return releases(o, &o.Status)
	case *v1alpha1.ClusterConfigPolicy:
		return releases(o, &o.Status)
	case *v1beta1.Instance:
		return instance(o)
	case *fleetv1.Module:
		return module(subject.KindModule, o, &o.Status)
	case *fleetv1.BootstrapModule:
		return module(subject.KindBootstrapModule, o, &o.Status)
	default:
		return nil
	}
}

func treeOf(ring, kind string, o client.Object) *tree {
	return &tree{object: Object{Ring: ring, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}}
}

// endOf is when a rollout ended. The last one that failed may go on.
func endOf(isLast bool, ended *metav1.MicroTime, outcome string) *metav1.MicroTime {
	if isLast && outcome == string(rollout.OutcomeFailed) {
		return nil
	}
	return ended
}

// waits adds the reason that the conditions have. That of a stop began when it was Stalled.
func (n node) waits(conditions []metav1.Condition, since *metav1.Time) {
	ready := apimeta.FindStatusCondition(conditions, ring.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue {
		return
	}
	at := time.Time{}
	if since != nil {
		at = since.Time
	}
	stalled := apimeta.FindStatusCondition(conditions, ring.ConditionStalled)
	isStalled := stalled != nil && stalled.Status == metav1.ConditionTrue
	if isStalled {
		at = stalled.LastTransitionTime.Time
	}
	n.reason(ready.Reason, ready.Message, at, isStalled)
}

func group(g *v1alpha1.RolloutGroup) []Span {
	t := treeOf(metrics.RingZones, subject.KindGroup, g)
	for i := range g.Status.History {
		r := &g.Status.History[i]
		id := strconv.FormatInt(r.Number, 10)
		root := t.rollout(identity.Trace(g.UID, id, r.StartedAt.Time), id, r.StartedAt, endOf(i == 0, r.FinishedAt, r.Outcome), r.Outcome, "")
		for k := range r.Zones {
			z := &r.Zones[k]
			root.part(KindZone, z.Name, z.StartedAt, z.FinishedAt, string(rollout.OutcomeComplete), "")
		}
		if i == 0 {
			root.waits(g.Status.Conditions, g.Status.Since)
		}
	}
	return t.spans
}

func instance(i *v1beta1.Instance) []Span {
	t := treeOf(metrics.RingPlans, subject.KindInstance, i)
	if e := i.Status.Running(); e != nil {
		root := t.rollout(identity.Trace(i.UID, e.Plan, e.StartedAt.Time), e.Plan, e.StartedAt, nil, "", "")
		root.phases(i.Status.PlanStatus[e.Plan], string(e.UID))
		root.waits(i.Status.Conditions, i.Status.Since)
	}
	for k := range i.Status.History {
		e := &i.Status.History[k]
		root := t.rollout(identity.Trace(i.UID, e.Plan, e.StartedAt.Time), e.Plan, e.StartedAt, &e.FinishedAt, string(e.Result), e.Message)
		root.phases(i.Status.PlanStatus[e.Plan], string(e.UID))
	}
	return t.spans
}

// phases adds the phases and steps of an execution, if they are those of the status.
func (n node) phases(plan v1beta1.PlanStatus, execution string) {
	if string(plan.UID) != execution {
		return
	}
	for i := range plan.Phases {
		p := &plan.Phases[i]
		phase := n.part("Phase", p.Name, p.StartedAt, endOfPhase(p), outcomeOfStep(p.Status), p.Message)
		for k := range p.Steps {
			s := &p.Steps[k]
			phase.part("Step", s.Name, s.StartedAt, s.FinishedAt, outcomeOfStep(s.Status), s.Message)
		}
	}
}

// endOfPhase is when the last step of a phase was complete, if all are.
func endOfPhase(p *v1beta1.PhaseStatus) *metav1.MicroTime {
	var last *metav1.MicroTime
	for i := range p.Steps {
		if at := p.Steps[i].FinishedAt; last == nil || last.Before(at) {
			last = at
		}
	}
	if p.Status != v1beta1.Complete {
		return nil
	}
	return last
}

func outcomeOfStep(s v1beta1.ExecutionStatus) string {
	if s == v1beta1.Complete {
		return string(rollout.OutcomeComplete)
	}
	return string(s)
}

func module(kind string, m client.Object, s *fleetv1.ModuleStatus) []Span {
	t := treeOf(metrics.RingFleet, kind, m)
	for i := range s.History {
		p := &s.History[i]
		root := t.rollout(identity.Trace(m.GetUID(), p.Revision, p.StartedAt.Time), p.Revision, p.StartedAt, endOf(i == 0, p.FinishedAt, p.Outcome), p.Outcome, "")
		if i > 0 || p.Revision != s.TargetRevision {
			continue
		}
		for k := range s.Stages {
			stage := &s.Stages[k]
			root.part("Stage", stage.Name, stage.StartedAt, stage.FinishedAt, string(rollout.OutcomeComplete), stage.Message)
		}
		root.waits(s.Conditions, s.Since)
	}
	return t.spans
}

// releases are those of a policy that are under way, and the last ones. Each is a rollout of a ConfigMap or Secret.
func releases(p client.Object, s *v1alpha1.ConfigPolicyStatus) []Span {
	t := treeOf(metrics.RingConfig, "", p)
	for i := range s.Releases {
		r := &s.Releases[i]
		if r.StartedAt == nil { // it is from an earlier version
			continue
		}
		digest := t.of(r.Object, r.Namespace)
		outcome := ""
		if r.RolledBack > 0 {
			outcome = string(rollout.OutcomeRolledBack)
		}
		root := t.rollout(identity.Release(p.GetUID(), r), digest, *r.StartedAt, nil, outcome, r.WaitingFor)
		for k := range r.Stages {
			stage := &r.Stages[k]
			root.part("Stage", stage.Name, stage.StartedAt, stage.FinishedAt, string(rollout.OutcomeComplete), "")
		}
		root.reason(r.Phase, r.WaitingFor, time.Time{}, r.Phase == string(rollout.PhaseFailed))
	}
	for i := range s.History {
		r := &s.History[i]
		digest := t.of(r.Object, r.Namespace)
		root := t.rollout(identity.PastRelease(p.GetUID(), r), digest, r.StartedAt, &r.FinishedAt, r.Outcome, "")
		for k := range r.Stages {
			stage := &r.Stages[k]
			root.part("Stage", stage.Name, &stage.StartedAt, stage.FinishedAt, string(rollout.OutcomeComplete), "")
		}
	}
	return t.spans
}

// of makes a release what the spans are about, and returns the digest of its content.
func (t *tree) of(release, namespace string) string {
	object, digest := content.CutRelease(release)
	t.object.Namespace = namespace
	t.object.Kind, t.object.Name, _ = strings.Cut(object, " ")
	return digest
}
