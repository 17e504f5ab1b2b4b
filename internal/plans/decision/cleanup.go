package decision

import (
	"slices"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// remove handles an Instance that is being deleted: its cleanup plan runs, whatever ran
// before, and then the finalizer is removed.
func (d *decider) remove() {
	if !d.hasFinalizer() {
		return
	}
	e := d.Status.Execution
	cleaning := e != nil && e.Cause == v1beta1.CauseDelete
	switch {
	case d.NamespaceGoes:
		d.release("the namespace is being deleted")
	case cleaning && e.FinishedAt == nil:
		d.clean(e)
	case cleaning && e.Result == v1beta1.ResultFailed:
		d.cleanAgain(e)
	case cleaning:
		d.writesInstance(write.Write{Act: write.RemoveFinalizer})
	case !d.canClean():
		d.release("there is no cleanup plan")
	default:
		d.end(v1beta1.ResultSuperseded, "the Instance is being deleted")
		d.begin(beginning{Choice: choice.Choice{Plan: v1beta1.CleanupPlan, Cause: v1beta1.CauseDelete}, uid: d.NewUID})
	}
}

// clean continues the cleanup, unless a user abandons it or its content no longer
// exists.
func (d *decider) clean(e *v1beta1.Execution) {
	switch {
	case d.isAbandoned(e):
	case d.content(e) == nil:
		d.release("its OperatorVersion no longer exists")
	default:
		d.advance()
	}
}

func (d *decider) cleanAgain(e *v1beta1.Execution) {
	switch {
	case d.order(vocabulary.AbandonPlan).is(e) || !d.canClean():
		d.writesInstance(write.Write{Act: write.RemoveFinalizer})
	case d.order(vocabulary.RetryPlan).is(e):
		d.retry(e)
	}
}

func (d *decider) canClean() bool {
	if d.Version == nil {
		return false
	}
	_, ok := d.Version.Spec.Plans[v1beta1.CleanupPlan]
	return ok
}

// release lets the Instance be deleted without its cleanup.
func (d *decider) release(why string) {
	if d.Status.Running() != nil {
		d.end(v1beta1.ResultAbandoned, why)
		d.Again = true
		return
	}
	d.writesInstance(write.Write{Act: write.RemoveFinalizer})
}

func (d *decider) hasFinalizer() bool {
	return slices.Contains(d.Instance.Finalizers, vocabulary.CleanupFinalizer)
}
