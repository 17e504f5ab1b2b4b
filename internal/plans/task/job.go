package task

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/write"
)

// A Job is run by its creation, and says with its status that it has run. Kubernetes removes one
// that has a time to live; so that it does not run again in the same step, the inventory says that
// it was complete.

// At is a step of the execution, as the inventory names it.
func (r *Run) At(phase, step string) string {
	return string(r.Execution.UID) + " " + phase + "/" + step
}

// at is the step of the task.
func (w *work) at() string { return w.At(w.phase, w.step) }

// hasRun reports whether a Job that does not exist any more was complete in this step.
func (w *work) hasRun(ref object.Ref) bool {
	return ref.GroupKind() == object.JobKind && slices.ContainsFunc(w.o.Instance.Status.Inventory, func(e v1beta1.InventoryEntry) bool {
		return e.CompletedIn == w.at() && object.EntryRef(e).Same(ref)
	})
}

// ranWhileGoing reports whether a Job that is being deleted was complete in this step before.
func (w *work) ranWhileGoing(live *unstructured.Unstructured) bool {
	end, _ := jobEnd(live)
	return live.GetDeletionTimestamp() != nil && end == jobComplete && w.isApplied(live)
}

// noteRun records that a Job is complete which may be removed before the step is.
func (w *work) noteRun(f *Finding, ref object.Ref, live *unstructured.Unstructured) {
	_, isTimed, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", "ttlSecondsAfterFinished")
	if end, _ := jobEnd(live); end != jobComplete || !isTimed && live.GetDeletionTimestamp() == nil {
		return
	}
	if f.Completed == nil {
		f.Completed = map[object.Ref]string{}
	}
	f.Completed[ref] = w.at()
}

// runsAgain deletes a Job that has failed in an earlier execution, or what a hook has made in
// one, so that it is created again.
func (w *work) runsAgain(f *Finding, ref object.Ref, u, live *unstructured.Unstructured) bool {
	if end, _ := jobEnd(live); w.isApplied(live) || end != jobFailed && !w.isMadeAgain(u) {
		return false
	}
	f.Writes = append(f.Writes, write.Write{Act: write.Delete, Ref: ref, UID: live.GetUID()})
	return true
}
