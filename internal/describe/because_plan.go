package describe

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/plans"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// maxObjects bounds how many objects of an inventory are looked at.
const maxObjects = 200

// instance is an Instance: its plan, the step that it is at, and of what that has
// applied the object that is not well.
func (a *asker) instance(ctx context.Context, ref Ref, first bool) (answer, error) {
	i := &v1beta1.Instance{}
	if err := a.get(ctx, ref, i); err != nil {
		_, err = plans.Explain(ctx, a.Client, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}) // says it better
		return answer{}, err
	}
	e := plans.ExplanationOf(i)
	link := a.link(ref, e.Reason, "%s", strings.TrimSuffix(e.Sentence, "."))
	link.Ring, link.Phase, link.Since = manager.RingPlans, e.Phase, e.Since
	found := answer{links: []Link{link}, details: e}
	p := planAnswer{asker: a, i: i, e: &e, found: found}
	p.goOn(ctx)
	return p.found, nil
}

// planAnswer is the answer about an Instance, as it comes together.
type planAnswer struct {
	*asker

	i     *v1beta1.Instance
	e     *plans.Explanation
	found answer
}

func (p *planAnswer) own() *Link { return &p.found.links[0] }

func (p *planAnswer) goOn(ctx context.Context) {
	switch {
	case p.i.DeletionTimestamp != nil && p.isLeft():
		p.leaving()
		return
	case p.e.Phase == PhaseUnseen:
		p.own().Reason = ReasonNotObserved
		p.found.on = p.manager(p.i.Namespace)
		return
	case p.e.Phase == rollout.PhasePaused:
		p.own().Owner = annotator(p.i, vocabulary.Paused.Native)
		p.own().Next = p.kubectl("annotate", refTo(kindInstance, p.i), vocabulary.Paused.Native+"-")
		return
	case p.e.Reason == plans.ReasonNoVersion:
		p.noVersion()
		return
	case p.e.Reason == plans.ReasonInvalid:
		p.own().Next = p.kubectl("edit", refTo(kindInstance, p.i))
		return
	case p.e.Reason == plans.ReasonIdle:
		return
	}
	p.step()
	p.own().Deadline = p.deadline(ctx)
	p.objects(ctx)
}

// isLeft is true of an Instance on its way out of which no plan has to clean up any more.
func (p *planAnswer) isLeft() bool {
	x := p.i.Status.Execution
	return !slices.Contains(p.i.Finalizers, vocabulary.CleanupFinalizer) || x != nil && x.Cause == v1beta1.CauseDelete && x.Result == v1beta1.ResultComplete
}

// leaving goes to who keeps an Instance that is being deleted.
func (p *planAnswer) leaving() {
	own := p.own()
	own.Reason, own.Phase, own.Since = reasons.Deleting, rollout.PhaseWaiting, momentOrNil(p.i.DeletionTimestamp.Time)
	own.Sentence = p.place() + "Instance " + p.i.Name + " is being deleted"
	p.found = p.kept(refTo(kindInstance, p.i), p.i, vocabulary.CleanupFinalizer, p.found)
}

// deadline is when the plan that runs has taken too long, or its phase or its step;
// nil if they may take for ever, or nobody may see.
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

// version is the OperatorVersion that the Instance refers to.
func (p *planAnswer) version() Ref {
	ref := Ref{Kind: kindVersion, Namespace: p.i.Spec.OperatorVersion.Namespace, Name: p.i.Spec.OperatorVersion.Name}
	if ref.Namespace == "" {
		ref.Namespace = p.i.Namespace
	}
	return ref
}

func (p *planAnswer) noVersion() {
	ref := p.version()
	link := p.link(ref, ReasonMissing, "OperatorVersion %s is not there", ref.Name)
	link.Next = p.pointless("kubectl get operatorversions -n " + ref.Namespace)
	p.found.links = append(p.found.links, link)
}

// step is the first step that is begun and not complete.
func (p *planAnswer) step() {
	for i := range p.e.Phases {
		steps := p.e.Phases[i].Steps
		at := slices.IndexFunc(steps, func(s v1beta1.StepStatus) bool { return howStepIs[s.Status] != "" })
		if at >= 0 {
			p.found.links = append(p.found.links, p.stepLink(p.e.Phases[i].Name+"/"+steps[at].Name, &steps[at]))
			return
		}
	}
}

func (p *planAnswer) stepLink(name string, s *v1beta1.StepStatus) Link {
	link := p.link(Ref{Kind: kindStep, Namespace: p.i.Namespace, Name: name}, rollout.ReasonProgressing,
		"step %s of plan %s is %s%s", name, p.e.Plan, howStepIs[s.Status], colon(s.Message))
	link.Ring, link.Phase = manager.RingPlans, rollout.PhaseProgressing
	if s.StartedAt != nil {
		link.Since = momentOrNil(s.StartedAt.Time)
	}
	if s.Status == v1beta1.FatalError {
		link.Phase, link.Reason = rollout.PhaseFailed, rollout.ReasonFailed
	}
	return link
}

var howStepIs = map[v1beta1.ExecutionStatus]string{
	v1beta1.InProgress: "on its way", v1beta1.Error: "tried again after it has failed", v1beta1.FatalError: "given up",
}

// objects goes to the first object of the inventory that is not well: one that was
// applied by the step that is on its way, or else any.
func (p *planAnswer) objects(ctx context.Context) {
	if bad := p.notWell(ctx); bad != nil {
		p.found.on = p.about(*bad)
		return
	}
	refused := p.refusal(ctx, refTo(kindInstance, p.i), p.e.Sentence+" "+p.failure())
	if refused.links[0].Reason != ReasonRefused {
		p.found = p.found.and(refused)
		return
	}
	last := &p.found.links[len(p.found.links)-1]
	switch {
	case p.i.Status.AggregatedStatus.Status == v1beta1.FatalError:
		last.Next = p.pointless("spillway plan retry " + p.i.Name + " -n " + p.i.Namespace)
	case p.i.Status.AggregatedStatus.ActivePlan != "":
		last.Next = p.kubectl("describe", refTo(kindInstance, p.i))
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

// notWell is the first object that is not well, nil if all are; one that the step has
// applied that the plan is at comes before others.
func (p *planAnswer) notWell(ctx context.Context) *Ref {
	var other *Ref
	for _, entry := range p.i.Status.Inventory[:min(len(p.i.Status.Inventory), maxObjects)] {
		ref := Ref{Kind: entry.Kind, Namespace: entry.Namespace, Name: entry.Name, APIVersion: foreign(entry.Group, entry.Version)}
		u, err := p.readEntry(ctx, entry)
		switch {
		case isNotFound(err): // it was about to be applied, and was not
		case err == nil && p.isWell(ctx, ref, u):
		case err == nil && p.isOfStep(u):
			return &ref
		default: // of what cannot be read that is told when it is asked about
			other = cmp.Or(other, &ref)
		}
	}
	return other
}

func (p *planAnswer) readEntry(ctx context.Context, entry v1beta1.InventoryEntry) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(strings.TrimPrefix(entry.Group+"/"+entry.Version, "/"))
	u.SetKind(entry.Kind)
	return u, p.get(ctx, Ref{Kind: entry.Kind, Namespace: entry.Namespace, Name: entry.Name}, u)
}

// isOfStep is true of what the step has applied that the plan is at.
func (p *planAnswer) isOfStep(u *unstructured.Unstructured) bool {
	annotations := u.GetAnnotations()
	return annotations[vocabulary.PhaseAnnotation]+"/"+annotations[vocabulary.StepAnnotation] == p.i.Status.Place
}

// isWell judges an object; a StatefulSet that is a zone is well if its group is.
func (a *asker) isWell(ctx context.Context, ref Ref, u *unstructured.Unstructured) bool {
	if lacks, _ := task.Judge(u); lacks != "" {
		return false
	}
	group := vocabulary.GroupOf(u.GetLabels(), u.GetAnnotations())
	if ref.Kind != config.StatefulSet || group == "" {
		return true
	}
	complete, err := a.isComplete(ctx, Ref{Kind: kindGroup, Namespace: ref.Namespace, Name: group})
	return complete || err != nil // there may be no groups
}

// known are the groups of Kubernetes, Flux and Spillway, of which the kind alone says
// what is meant.
var known = []string{"", "apps", "batch", "policy", "kudo.dev", "spillway.dev", "fleet.squaremo.dev", "rollout-operator.grafana.com",
	"kustomize.toolkit.fluxcd.io", "source.toolkit.fluxcd.io"}

// foreign is the apiVersion of a kind that its name alone does not identify.
func foreign(group, version string) string {
	if slices.Contains(known, group) {
		return ""
	}
	return group + "/" + version
}
