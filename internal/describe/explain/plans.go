package explain

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/plans"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/decision"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/internal/shell"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// maxObjects bounds how many objects of an inventory are looked at.
const maxObjects = 200

// instance is an Instance: its plan, the step that runs, and the unhealthy object
// that the step has applied.
func (a *asker) instance(ctx context.Context, ref describe.Ref, first bool) (answer, error) {
	i := &v1beta1.Instance{}
	if err := a.get(ctx, ref, i); err != nil {
		_, err = plans.Explain(ctx, a.Client, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}) // says it better
		return answer{}, err
	}
	e := plans.ExplanationOf(i)
	described := describe.Instance(&e)
	p := planAnswer{answering{a, ref, answer{Links: []Link{a.linkTo(&described)}, Facts: describe.DecidedFacts(e.Rollout), Details: e}}, i, &e}
	if e.Reason.IsGate() {
		p.own().Deadline = p.deadline(ctx)
		links, err := a.atGate(ctx, ref)
		p.add(links...)
		return p.found, err
	}
	p.goOn(ctx)
	return p.found, nil
}

// planAnswer is the answer about an Instance, as it comes together.
type planAnswer struct {
	answering

	i *v1beta1.Instance
	e *plans.Explanation
}

func (p *planAnswer) goOn(ctx context.Context) {
	switch {
	case p.i.DeletionTimestamp != nil && p.isLeft():
		p.leaving()
		return
	case p.e.Phase == describe.PhaseUnseen:
		p.own().Reason = ReasonNotObserved
		p.found.Then = p.aboutManager(p.i.Namespace)
		return
	case p.e.Phase == rollout.PhasePaused:
		p.own().Owner = annotator(p.i, vocabulary.Paused.Native)
		p.own().Next = p.spillway("resume", p.ref)
		return
	case p.e.Reason == decision.ReasonNoVersion:
		p.noVersion()
		return
	case p.e.Reason == decision.ReasonInvalid:
		p.own().Next = p.kubectl("edit", p.ref)
		return
	case p.e.Reason == decision.ReasonIdle:
		return
	}
	p.step()
	p.own().Deadline = p.deadline(ctx)
	p.objects(ctx)
}

// isLeft is true of an Instance that is being deleted and needs no cleanup plan any more.
func (p *planAnswer) isLeft() bool {
	x := p.i.Status.Execution
	return !slices.Contains(p.i.Finalizers, vocabulary.CleanupFinalizer) || x != nil && x.Cause == v1beta1.CauseDelete && x.Result == v1beta1.ResultComplete
}

// leaving goes to who keeps an Instance that is being deleted.
func (p *planAnswer) leaving() {
	own := p.own()
	own.Reason, own.Phase, own.Since = reasons.Deleting, rollout.PhaseWaiting, describe.TimeOrNil(p.i.DeletionTimestamp.Time)
	own.Sentence = p.place() + "Instance " + p.i.Name + " is being deleted"
	p.found = p.kept(p.ref, p.i, vocabulary.CleanupFinalizer, p.found)
}

// deadline is when the plan that runs has taken too long, or its phase or its step;
// nil if there is no timeout, or it may not be read.
func (p *planAnswer) deadline(ctx context.Context) *time.Time {
	v := &v1beta1.OperatorVersion{}
	x := p.i.Status.Execution
	if x == nil || x.FinishedAt != nil || p.get(ctx, p.version(), v) != nil {
		return nil
	}
	plan := v.Spec.Plans[x.Plan]
	soonest := due(nil, plan.Timeout, &x.StartedAt)
	for i := range min(len(plan.Phases), len(p.e.Phases)) {
		if is := &p.e.Phases[i]; is.Status != v1beta1.Complete {
			soonest = dueWithin(due(soonest, plan.Phases[i].Timeout, is.StartedAt), plan.Phases[i].Steps, is.Steps)
		}
	}
	return soonest
}

// dueWithin is the earlier of a moment and of those at which steps have taken too long.
func dueWithin(soonest *time.Time, steps []v1beta1.Step, are []v1beta1.StepStatus) *time.Time {
	for i := range min(len(steps), len(are)) {
		if are[i].Status != v1beta1.Complete {
			soonest = due(soonest, steps[i].Timeout, are[i].StartedAt)
		}
	}
	return soonest
}

// due is the earlier of two moments, of which the second is when a time runs out.
func due(soonest *time.Time, timeout *metav1.Duration, from *metav1.MicroTime) *time.Time {
	if timeout == nil || timeout.Duration <= 0 || from == nil {
		return soonest
	}
	at := from.Add(timeout.Duration)
	if soonest != nil && soonest.Before(at) {
		return soonest
	}
	return &at
}

func (p *planAnswer) noVersion() {
	ref := p.version()
	link := p.link(ref, ReasonMissing, "OperatorVersion %s not found", ref.Name)
	link.Next = p.command("kubectl get operatorversions " + shell.Join("-n", ref.Namespace))
	p.add(link)
}

// version is the OperatorVersion that the Instance refers to.
func (p *planAnswer) version() describe.Ref {
	key := choice.VersionKey(p.i.Namespace, &p.i.Spec)
	return describe.Ref{Kind: describe.KindVersion, Namespace: key.Namespace, Name: key.Name}
}

// step is the first step that is begun and not complete.
func (p *planAnswer) step() {
	for i := range p.e.Phases {
		steps := p.e.Phases[i].Steps
		at := slices.IndexFunc(steps, func(s v1beta1.StepStatus) bool { return howStepIs[s.Status] != "" })
		if at >= 0 {
			p.add(p.stepLink(p.e.Phases[i].Name+"/"+steps[at].Name, &steps[at]))
			return
		}
	}
}

func (p *planAnswer) stepLink(name string, s *v1beta1.StepStatus) Link {
	link := p.link(describe.Ref{Kind: describe.KindStep, Namespace: p.i.Namespace, Name: name}, rollout.ReasonProgressing,
		"step %s of plan %s %s%s", name, p.e.Plan, howStepIs[s.Status], colon(s.Message))
	link.Ring, link.Phase = manager.RingPlans, rollout.PhaseProgressing
	if s.StartedAt != nil {
		link.Since = describe.TimeOrNil(s.StartedAt.Time)
	}
	if s.Status == v1beta1.FatalError {
		link.Phase, link.Reason = rollout.PhaseFailed, rollout.ReasonFailed
	}
	return link
}

var howStepIs = map[v1beta1.ExecutionStatus]string{
	v1beta1.InProgress: "is running", v1beta1.Error: "is being retried", v1beta1.FatalError: "failed",
}

// objects continues with the first unhealthy object of the inventory: one that the
// running step has applied, or else any.
func (p *planAnswer) objects(ctx context.Context) {
	if bad := p.firstUnhealthy(ctx); bad != nil {
		p.found.Then = p.about(*bad)
		return
	}
	refused := p.refusal(ctx, p.ref, p.e.Sentence+" "+p.failure())
	if refused.Links[0].Reason != ReasonRefused {
		p.found = p.found.And(refused)
		return
	}
	last := &p.found.Links[len(p.found.Links)-1]
	switch {
	case p.i.Status.AggregatedStatus.Status == v1beta1.FatalError:
		last.Next = p.command("spillway plan retry " + shell.Join(p.i.Name, "-n", p.i.Namespace))
	case p.i.Status.AggregatedStatus.ActivePlan != "":
		last.Next = p.kubectl("describe", p.ref)
	}
}

// failure is what the step said that has failed.
func (p *planAnswer) failure() string {
	for _, phase := range p.e.Phases {
		for _, s := range phase.Steps {
			if s.Message != "" {
				return s.Message
			}
		}
	}
	return ""
}

// firstUnhealthy is the first unhealthy object, nil if there is none; one that the running
// step has applied comes before others.
func (p *planAnswer) firstUnhealthy(ctx context.Context) *describe.Ref {
	var other *describe.Ref
	for _, entry := range p.i.Status.Inventory[:min(len(p.i.Status.Inventory), maxObjects)] {
		ref := describe.Ref{Kind: entry.Kind, Namespace: entry.Namespace, Name: entry.Name, APIVersion: foreign(entry.Group, entry.Version)}
		u, err := p.readEntry(ctx, entry)
		switch {
		case IsNotFound(err): // it was about to be applied, and was not
		case err == nil && p.isHealthy(ctx, ref, u):
		case err == nil && p.isOfStep(u):
			return &ref
		default: // its own question says that it cannot be read
			other = cmp.Or(other, &ref)
		}
	}
	return other
}

func (p *planAnswer) readEntry(ctx context.Context, entry v1beta1.InventoryEntry) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(strings.TrimPrefix(entry.Group+"/"+entry.Version, "/"))
	u.SetKind(entry.Kind)
	return u, p.get(ctx, describe.Ref{Kind: entry.Kind, Namespace: entry.Namespace, Name: entry.Name}, u)
}

// isOfStep is true of what the step has applied that the plan is at.
func (p *planAnswer) isOfStep(u *unstructured.Unstructured) bool {
	annotations := u.GetAnnotations()
	return annotations[vocabulary.PhaseAnnotation]+"/"+annotations[vocabulary.StepAnnotation] == p.i.Status.Place
}

// isHealthy judges an object; a StatefulSet that is a zone is healthy if its group is
// complete.
func (a *asker) isHealthy(ctx context.Context, ref describe.Ref, u *unstructured.Unstructured) bool {
	if lacks, _ := task.Judge(u); lacks != "" {
		return a.waitsForConsumer(ctx, u)
	}
	group := vocabulary.GroupOf(u.GetLabels(), u.GetAnnotations())
	if ref.Kind != workloads.StatefulSet || group == "" {
		return true
	}
	complete, err := a.isComplete(ctx, describe.Ref{Kind: describe.KindGroup, Namespace: ref.Namespace, Name: group})
	return complete || err != nil // there may be no groups
}

// waitsForConsumer is true of a claim that is bound only when a Pod uses it.
func (a *asker) waitsForConsumer(ctx context.Context, u *unstructured.Unstructured) bool {
	claim := &corev1.PersistentVolumeClaim{}
	if u.GetKind() != describe.KindClaim || runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, claim) != nil {
		return false
	}
	return claim.Status.Phase == corev1.ClaimPending && a.waitsForPod(ctx, claim)
}
