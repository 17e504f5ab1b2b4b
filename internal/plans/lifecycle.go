package plans

import (
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// goesOn is the link of a plan that runs: it goes on, unless somebody gives it up
// or something else takes its place.
func (d *decision) goesOn() bool {
	e := d.execution()
	if e == nil {
		return false
	}
	if d.isAbandoned(e) || d.isReplaced(e) {
		return true
	}
	d.advance()
	return true
}

func (d *decision) isAbandoned(e *v1beta1.Execution) bool {
	order := d.order(vocabulary.AbandonPlan)
	if !order.is(e) {
		return false
	}
	d.end(v1beta1.ResultAbandoned, "abandoned"+order.clause())
	d.again = true
	return true
}

// order reads an annotation; one that cannot be understood is a problem.
func (d *decision) order(key vocabulary.Key) order {
	o, problem := orderOf(d.o.Instance.Annotations, key)
	if problem != nil && !slices.Contains(d.problems, *problem) {
		d.problem(*problem)
	}
	return o
}

// isReplaced is true if another execution takes the place of the one that runs:
// the same plan for parameters that changed meanwhile, or by another uid; any
// plan, if somebody wants the new spec to supersede the old. A change that is not
// let through by the guard never gets here; one that is, and does not replace the
// plan, is made when that has ended.
func (d *decision) isReplaced(e *v1beta1.Execution) bool {
	if d.o.Version == nil {
		return false
	}
	request := &d.o.Instance.Spec.PlanExecution
	if sameTarget(d.o.Instance.Namespace, &e.Spec, &d.o.Instance.Spec) {
		if request.PlanName != e.Plan || request.UID == "" || request.UID == e.UID || isSame(request, &e.Spec.PlanExecution) {
			return false
		}
		d.end(v1beta1.ResultSuperseded, "asked for anew")
		d.begin(beginning{Choice: Choice{Plan: e.Plan, Cause: v1beta1.CauseRequest}, uid: request.UID, advances: e.Advances})
		return true
	}
	order := d.order(vocabulary.SupersedePlan)
	change := d.replacement()
	choice, problems := Choose(change)
	d.problem(problems...)
	switch {
	case len(problems) > 0 || !order.is(e) && (choice.Plan != e.Plan || change.isUpgrade(&e.Spec)):
		return false
	case order.is(e):
		d.end(v1beta1.ResultSuperseded, "superseded"+order.clause())
	default:
		d.end(v1beta1.ResultSuperseded, "the spec changed")
	}
	if choice.Plan == "" {
		d.again = true
		return true
	}
	d.begin(beginning{Choice: choice, uid: d.o.NewUID, advances: true})
	return true
}

func isSame(a, b *v1beta1.PlanExecution) bool { return a.PlanName == b.PlanName && a.UID == b.UID }

// waitsForVersion is the link of an Instance of which nobody knows what it is.
func (d *decision) waitsForVersion() bool {
	if d.o.Version != nil {
		return false
	}
	d.block = &rollout.Block{Reason: ReasonNoVersion, Message: "OperatorVersion " + d.o.Instance.Spec.OperatorVersion.Name + " is not in namespace " +
		versionNamespace(d.o.Instance.Namespace, &d.o.Instance.Spec) + "; install it"}
	return true
}

// adopts takes over what the predecessor has left: the spec that it applied last,
// as its old versions noted, or, if one of its plans has run, the spec as it is.
// It never ends the chain, since that is noted with whatever follows.
func (d *decision) adopts() bool {
	s := &d.status
	if s.LastAppliedInstanceSpec != nil || s.Execution != nil {
		return false
	}
	if spec := noted(d.o.Instance.Annotations); spec != nil {
		s.LastAppliedInstanceSpec = spec
	} else if hasRun(s.PlanStatus) {
		s.LastAppliedInstanceSpec = target(&d.o.Instance.Spec)
	}
	if s.LastAppliedInstanceSpec != nil {
		s.ImmutableParameters = immutables(d.o.Version.Spec, s.LastAppliedInstanceSpec.Parameters, nil)
		s.PlanStatus = atRest(s.PlanStatus)
		s.AggregatedStatus.Status = v1beta1.Complete
	}
	return false
}

func noted(annotations map[string]string) *v1beta1.InstanceSpec {
	value := vocabulary.LastAppliedInstanceState.Get(annotations)
	if value == "" {
		return nil
	}
	spec := &v1beta1.InstanceSpec{}
	if json.Unmarshal([]byte(value), spec) != nil || spec.OperatorVersion.Name == "" {
		return nil
	}
	return target(spec)
}

// hasRun is true if the application was installed by a plan.
func hasRun(plans map[string]v1beta1.PlanStatus) bool {
	for _, plan := range []string{v1beta1.DeployPlan, v1beta1.UpdatePlan, v1beta1.UpgradePlan} {
		if plans[plan].Status == v1beta1.Complete {
			return true
		}
	}
	return false
}

// atRest are plans of which the predecessor left none running.
func atRest(plans map[string]v1beta1.PlanStatus) map[string]v1beta1.PlanStatus {
	for name, p := range plans {
		if p.Status.IsRunning() {
			p.Status, p.Message = v1beta1.FatalError, "left unfinished by the predecessor"
			plans[name] = p
		}
	}
	return plans
}

// target is a spec without the plan that it asks for.
func target(spec *v1beta1.InstanceSpec) *v1beta1.InstanceSpec {
	t := spec.DeepCopy()
	t.PlanExecution = v1beta1.PlanExecution{}
	return t
}

// clearsRequest removes a wish that was answered, so that it can be made again.
func (d *decision) clearsRequest() bool {
	request := &d.o.Instance.Spec.PlanExecution
	if request.PlanName == "" {
		return false
	}
	e := d.status.Execution
	answered := e != nil && (isSame(request, &e.Spec.PlanExecution) || request.UID != "" && request.UID == e.UID)
	if !answered && !request.Status.IsTerminal() {
		return false
	}
	return d.alone(Write{Act: ClearRequest})
}

// takesFinalizer makes sure that the cleanup plan can run before the Instance goes.
func (d *decision) takesFinalizer() bool {
	_, cleans := d.o.Version.Spec.Plans[v1beta1.CleanupPlan]
	if !cleans || d.hasFinalizer() {
		return false
	}
	return d.alone(Write{Act: AddFinalizer})
}

func (d *decision) hasFinalizer() bool {
	return slices.Contains(d.o.Instance.Finalizers, vocabulary.CleanupFinalizer)
}

// change is what is wanted, beside what there is.
func (d *decision) change() Change {
	c := Change{
		Namespace: d.o.Instance.Namespace, Want: &d.o.Instance.Spec,
		Applied: d.status.LastAppliedInstanceSpec, New: d.o.Version.Spec, Immutable: d.status.ImmutableParameters,
	}
	if a := d.status.Attempted; a != nil && a.Touched {
		c.Attempted = &a.Spec
	}
	if d.o.Former != nil {
		c.Old = d.o.Former.Spec
	}
	return c
}

// replacement is the change that would take the place of the one that runs: what
// that has touched may be half there.
func (d *decision) replacement() Change {
	c := d.change()
	if e := d.execution(); e != nil && e.Advances && e.Touched {
		c.Attempted = &e.Spec
	}
	return c
}

// changes is the link of a spec that differs from what was applied. What failed
// is not tried again until it is changed, or somebody asks for it.
func (d *decision) changes() bool {
	change := d.change()
	choice, problems := Choose(change)
	switch {
	case len(problems) > 0:
		return d.problem(problems...)
	case choice.Plan == "":
		d.settle()
		return false
	case d.hasFailed():
		return false
	}
	d.begin(beginning{Choice: choice, uid: d.newUID(choice), advances: true})
	return true
}

// newUID is that of an execution. If somebody asks for the very plan that a change
// asks for, it is that one.
func (d *decision) newUID(c Choice) types.UID {
	request := &d.o.Instance.Spec.PlanExecution
	if request.PlanName == c.Plan && request.UID != "" {
		return request.UID
	}
	return d.o.NewUID
}

// hasFailed is true if just this was tried, and did not succeed.
func (d *decision) hasFailed() bool {
	a := d.status.Attempted
	return a != nil && a.Result != v1beta1.ResultSuperseded && sameTarget(d.o.Instance.Namespace, &a.Spec, &d.o.Instance.Spec)
}

func isFailure(r v1beta1.Result) bool {
	return r == v1beta1.ResultFailed || r == v1beta1.ResultAbandoned
}

// settle forgets a failure that the spec no longer asks for.
func (d *decision) settle() {
	if d.status.Attempted != nil && !d.hasFailed() {
		d.status.Attempted = nil
		d.status.AggregatedStatus.Status = v1beta1.Complete
	}
}

// retries is the link of somebody who wants to try again what has failed.
func (d *decision) retries() bool {
	e := d.status.Execution
	order := d.order(vocabulary.RetryPlan)
	if !order.is(e) || !isFailure(e.Result) || !sameTarget(d.o.Instance.Namespace, &e.Spec, &d.o.Instance.Spec) {
		return false
	}
	if _, ok := d.o.Version.Spec.Plans[e.Plan]; !ok {
		return d.problem(Problem{Field: "annotation " + vocabulary.RetryPlan.Native, Action: "OperatorVersion " + d.o.Version.Name + " has no plan " + e.Plan + "; remove the annotation"})
	}
	d.retry(e)
	return true
}

// retry begins a plan anew, without the steps that were complete.
func (d *decision) retry(e *v1beta1.Execution) {
	cause := v1beta1.CauseRetry
	if e.Cause == v1beta1.CauseDelete {
		cause = e.Cause
	}
	d.begin(beginning{
		Choice: Choice{Plan: e.Plan, Cause: cause, Changed: e.Changed}, uid: d.o.NewUID,
		advances: e.Advances, done: d.status.PlanStatus[e.Plan].Phases,
	})
}

// isRequested is the link of somebody who asks for a plan.
func (d *decision) isRequested() bool {
	request := &d.o.Instance.Spec.PlanExecution
	if request.PlanName == "" {
		return false
	}
	if problem := unaskable(d.o.Version, request.PlanName); problem != nil {
		return d.problem(*problem)
	}
	if request.UID == "" {
		return d.alone(Write{Act: Identify, UID: d.o.NewUID})
	}
	if _, problems := Values(d.o.Version.Spec, d.o.Instance.Spec.Parameters, d.status.ImmutableParameters); len(problems) > 0 {
		return d.problem(problems...)
	}
	d.begin(beginning{
		Choice: Choice{Plan: request.PlanName, Cause: v1beta1.CauseRequest}, uid: request.UID,
		advances: d.bringsAbout(request.PlanName),
	})
	return true
}

// unaskable says why nobody can ask for a plan.
func unaskable(v *Version, plan string) *Problem {
	const field = "spec.planExecution.planName"
	if _, ok := v.Spec.Plans[plan]; !ok {
		return &Problem{Field: field, Action: "OperatorVersion " + v.Name + " has no plan " + plan + "; name one that it has"}
	}
	if plan == v1beta1.CleanupPlan {
		return &Problem{Field: field, Action: "plan cleanup runs when the Instance is deleted; name another one"}
	}
	return nil
}

// bringsAbout is true if a plan does what a change asks for that is outstanding.
func (d *decision) bringsAbout(plan string) bool {
	choice, _ := Choose(d.change())
	return choice.Plan != "" && (choice.Plan == plan || plan == v1beta1.DeployPlan)
}

// remove is what happens while the Instance is being deleted: its cleanup plan
// runs, whatever ran before, and then the finalizer goes.
func (d *decision) remove() {
	if !d.hasFinalizer() {
		return
	}
	e := d.status.Execution
	cleaning := e != nil && e.Cause == v1beta1.CauseDelete
	switch {
	case d.o.NamespaceGoes:
		d.giveUp("the namespace is deleted as well")
	case cleaning && e.FinishedAt == nil:
		d.clean(e)
	case cleaning && e.Result == v1beta1.ResultFailed:
		d.cleanAgain(e)
	case cleaning:
		d.alone(Write{Act: RemoveFinalizer})
	case !d.canClean():
		d.giveUp("there is no cleanup plan")
	default:
		d.end(v1beta1.ResultSuperseded, "the Instance is deleted")
		d.begin(beginning{Choice: Choice{Plan: v1beta1.CleanupPlan, Cause: v1beta1.CauseDelete}, uid: d.o.NewUID})
	}
}

func (d *decision) canClean() bool {
	if d.o.Version == nil {
		return false
	}
	_, ok := d.o.Version.Spec.Plans[v1beta1.CleanupPlan]
	return ok
}

// clean goes on with the cleanup, unless somebody gives it up or nobody knows any
// more what it was.
func (d *decision) clean(e *v1beta1.Execution) {
	switch {
	case d.isAbandoned(e):
	case d.content(e) == nil:
		d.giveUp("its OperatorVersion is gone")
	default:
		d.advance()
	}
}

func (d *decision) cleanAgain(e *v1beta1.Execution) {
	switch {
	case d.order(vocabulary.AbandonPlan).is(e) || !d.canClean():
		d.alone(Write{Act: RemoveFinalizer})
	case d.order(vocabulary.RetryPlan).is(e):
		d.retry(e)
	}
}

// giveUp lets the Instance go without its cleanup.
func (d *decision) giveUp(why string) {
	if d.execution() != nil {
		d.end(v1beta1.ResultAbandoned, why)
		d.again = true
		return
	}
	d.alone(Write{Act: RemoveFinalizer})
}

// microNow is the present as it is written down.
func (d *decision) microNow() *metav1.MicroTime {
	t := metav1.NewMicroTime(d.o.Now.Truncate(time.Microsecond))
	return &t
}
