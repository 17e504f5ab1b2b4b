package decision

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/account"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// continues is the link of a running plan: it continues, unless a user abandons it or
// another execution replaces it.
func (d *decider) continues() bool {
	e := d.Status.Running()
	if e == nil {
		return false
	}
	if !d.isAbandoned(e) && !d.isReplaced(e) {
		d.advance()
	}
	return true
}

// isReplaced is true if another execution replaces the running one: the same plan with
// changed parameters or a new requested uid; any plan, if a user wants the new spec to
// supersede the old. Admission refuses most changes while a plan is running. A change
// that it admits, and that does not replace the plan, has its turn when the plan has
// ended.
func (d *decider) isReplaced(e *v1beta1.Execution) bool {
	switch {
	case d.Version == nil:
		return false
	case choice.SameTarget(d.Instance.Namespace, &e.Spec, &d.Instance.Spec):
		return d.isRequestedAgain(e)
	default:
		return d.isSuperseded(e)
	}
}

func (d *decider) isRequestedAgain(e *v1beta1.Execution) bool {
	request := &d.Instance.Spec.PlanExecution
	if request.PlanName != e.Plan || request.UID == "" || request.UID == e.UID || isSame(request, &e.Spec.PlanExecution) {
		return false
	}
	d.end(v1beta1.ResultSuperseded, "requested again")
	d.begin(beginning{Choice: choice.Choice{Plan: e.Plan, Cause: v1beta1.CauseRequest}, uid: request.UID, advances: e.Advances})
	return true
}

func (d *decider) isSuperseded(e *v1beta1.Execution) bool {
	order := d.order(vocabulary.SupersedePlan)
	change := choice.ReplacementOf(d.Instance, &d.Status, d.Version, d.Former)
	chosen, problems := choice.Choose(change)
	d.stalls(problems...)
	switch {
	case len(problems) > 0 || !order.is(e) && (chosen.Plan != e.Plan || change.IsUpgrade(&e.Spec)):
		return false
	case order.is(e):
		d.end(v1beta1.ResultSuperseded, "superseded"+order.clause())
	default:
		d.end(v1beta1.ResultSuperseded, "the spec changed")
	}
	if chosen.Plan == "" {
		d.Again = true
		return true
	}
	d.begin(beginning{Choice: chosen, uid: d.NewUID, advances: true})
	return true
}

// waitsForVersion is the link of an Instance whose OperatorVersion does not exist.
func (d *decider) waitsForVersion() bool {
	if d.Version != nil {
		return false
	}
	key := choice.VersionKey(d.Instance.Namespace, &d.Instance.Spec)
	message := "OperatorVersion " + key.Name + " not found in namespace " + key.Namespace
	if key.Namespace == d.Instance.Namespace {
		message += "; install it"
	} else {
		message += ", or not shared; install it, or annotate it with " + vocabulary.SharedWith.Native + ": " + d.Instance.Namespace
	}
	d.block = &rollout.Block{Reason: ReasonNoVersion, Message: message}
	return true
}

// hasWrongAccount is the link of an Instance whose account cannot exist.
func (d *decider) hasWrongAccount() bool {
	problem := d.accountProblem()
	return problem != nil && d.stalls(*problem)
}

// accountProblem is what is wrong with the name of the account, nil if nothing is.
func (d *decider) accountProblem() *choice.Problem {
	if why := account.Problem(d.Account.Name); why != "" {
		return &choice.Problem{Field: "spec.serviceAccountName", Action: why}
	}
	return nil
}

// hasWrongGates is the link of an Instance whose gates cannot be understood: no plan begins
// without them.
func (d *decider) hasWrongGates() bool {
	_, problems := choice.Gates(d.Instance, d.Version)
	return len(problems) > 0 && d.stalls(problems...)
}

// adopts takes over what KUDO has applied. It never ends the chain: the next status
// that is written contains it.
func (d *decider) adopts() bool {
	choice.Adopt(&d.Status, d.Instance, d.Version)
	return false
}

// clearsRequest removes a request that was answered, so that it can be made again.
func (d *decider) clearsRequest() bool {
	request := &d.Instance.Spec.PlanExecution
	if request.PlanName == "" || !d.isAnswered(request) {
		return false
	}
	return d.writesInstance(write.Write{Act: write.ClearRequest})
}

// isAnswered is true of a request whose plan has run, or that KUDO says has.
func (d *decider) isAnswered(request *v1beta1.PlanExecution) bool {
	e := d.Status.Execution
	answered := e != nil && (isSame(request, &e.Spec.PlanExecution) || request.UID != "" && request.UID == e.UID)
	return answered || request.Status.IsTerminal()
}

func isSame(a, b *v1beta1.PlanExecution) bool { return a.PlanName == b.PlanName && a.UID == b.UID }

// addsFinalizer makes sure that the cleanup plan can run before the Instance is deleted.
func (d *decider) addsFinalizer() bool {
	if !d.canClean() || d.hasFinalizer() {
		return false
	}
	return d.writesInstance(write.Write{Act: write.AddFinalizer})
}

// startsChange is the link of a spec that differs from what was applied. A change that
// failed is not tried again until the spec changes or a user requests it.
func (d *decider) startsChange() bool {
	chosen, problems := choice.Choose(choice.ChangeOf(d.Instance, &d.Status, d.Version, d.Former))
	switch {
	case len(problems) > 0:
		return d.stalls(problems...)
	case chosen.Plan == "":
		d.keepsUp()
		d.forgetFailure()
		return false
	case d.hasFailed():
		return false
	}
	d.begin(beginning{Choice: chosen, uid: d.uidFor(chosen), advances: true})
	return true
}

// keepsUp records a spec that is applied without a plan: it sets other parameters than
// the one before, and none of their values has changed.
func (d *decider) keepsUp() {
	if applied := d.Status.LastAppliedInstanceSpec; applied != nil && !choice.SameTarget(d.Instance.Namespace, applied, &d.Instance.Spec) {
		d.Status.LastAppliedInstanceSpec = choice.Target(&d.Instance.Spec)
	}
}

// uidFor is the uid of a new execution. If a user requests the plan that the change
// needs, it is that of the request.
func (d *decider) uidFor(c choice.Choice) types.UID {
	request := &d.Instance.Spec.PlanExecution
	if request.PlanName == c.Plan && request.UID != "" {
		return request.UID
	}
	return d.NewUID
}

// forgetFailure forgets a failure of a spec that is no longer wanted.
func (d *decider) forgetFailure() {
	if d.Status.Attempted != nil && !d.hasFailed() {
		d.Status.Attempted = nil
		d.Status.AggregatedStatus.Status = v1beta1.Complete
	}
}

// hasFailed is true if this spec was attempted and the plan for it did not succeed.
func (d *decider) hasFailed() bool {
	a := d.Status.Attempted
	return a != nil && a.Result != v1beta1.ResultSuperseded && choice.SameTarget(d.Instance.Namespace, &a.Spec, &d.Instance.Spec)
}

// startsRequest is the link of a user who requests a plan.
func (d *decider) startsRequest() bool {
	request := &d.Instance.Spec.PlanExecution
	if request.PlanName == "" {
		return false
	}
	if problem := choice.RequestProblem(d.Version, request.PlanName); problem != nil {
		return d.stalls(*problem)
	}
	if request.UID == "" {
		return d.writesInstance(write.Write{Act: write.Identify, UID: d.NewUID})
	}
	if _, problems := d.values(d.Version, d.Instance.Spec.Parameters); len(problems) > 0 {
		return d.stalls(problems...)
	}
	d.begin(beginning{
		Choice: choice.Choice{Plan: request.PlanName, Cause: v1beta1.CauseRequest}, uid: request.UID,
		advances: d.applies(request.PlanName),
	})
	return true
}

// applies is true if a requested plan applies a change that is outstanding.
func (d *decider) applies(plan string) bool {
	chosen, _ := choice.Choose(choice.ChangeOf(d.Instance, &d.Status, d.Version, d.Former))
	return chosen.Plan != "" && (chosen.Plan == plan || plan == v1beta1.DeployPlan)
}
