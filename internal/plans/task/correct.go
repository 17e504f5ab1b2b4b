package task

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Correct applies an object of the inventory again, as the step did that applied it last. It only
// applies: what the API server refuses to change is not replaced, and what holds data is not
// created again without the permission of its template. Fatal is why only a user can help.
func (r *Run) Correct(entry *v1beta1.InventoryEntry) Finding {
	phase, step := r.stepOf(entry)
	for _, t := range r.Version.Spec.Tasks {
		if step == nil || !slices.Contains(step.Tasks, t.Name) {
			continue
		}
		w := &work{Run: r, o: r.Snapshot, phase: phase, step: step.Name, name: t.Name, spec: t.Spec}
		if f, isMade := w.correct(t.Kind, object.EntryRef(*entry)); isMade {
			f = w.checked(f)
			f.hide(r.Snapshot.Hidden)
			return f
		}
	}
	return fatal("no task of its step renders it any more")
}

// stepOf is the step that applied an object, nil if the plan has none like it.
func (r *Run) stepOf(entry *v1beta1.InventoryEntry) (phase string, step *v1beta1.Step) {
	phases := r.Version.Spec.Plans[r.Execution.Plan].Phases
	for i := range phases {
		for j := range phases[i].Steps {
			if step := &phases[i].Steps[j]; r.At(phases[i].Name, step.Name) == entry.AppliedIn {
				return phases[i].Name, step
			}
		}
	}
	return "", nil
}

// correct applies the object again if the task makes it.
func (w *work) correct(kind string, ref object.Ref) (f Finding, isMade bool) {
	if deletes, err := w.deletes(kind); deletes || err != nil {
		return f, false
	}
	objects, err := w.makes(kind)
	if err != nil {
		return unrenderable(err), true
	}
	i := slices.IndexFunc(objects, func(u *unstructured.Unstructured) bool { return object.RefOf(u).Resembles(ref) })
	switch {
	case i < 0:
		return f, false
	case kind == v1beta1.PipeTask:
		return fatal("only its plan makes it, from files of a Pod"), true
	}
	u := objects[i]
	scope, known := w.scope(&f, u)
	if !known {
		return f, true
	}
	w.enhance(u, scope)
	if live, read := w.live(&f, object.RefOf(u)); read {
		w.reapply(&f, u, live)
	}
	return f, true
}

// reapply applies an object as it is rendered now over what exists of it.
func (w *work) reapply(f *Finding, u, live *unstructured.Unstructured) {
	ref := object.RefOf(u)
	w.track(u, live)
	w.keepMarks(u, live)
	takePermission(u)
	apply := write.Write{Act: write.Apply, Ref: ref, Object: u, Execution: w.Execution.UID}
	var err error
	switch apply.Generate, err = generated(u, live); {
	case err != nil:
		f.Fatal = err.Error()
	case live == nil && HoldsData(u) && vocabulary.LoseDataOnRecreate.Get(u.GetAnnotations()) != "true":
		f.Fatal = fmt.Sprintf("it held data, which is lost; to have it created again without it, run its plan, or annotate it in its template with %s=true",
			vocabulary.LoseDataOnRecreate.Native)
	case live == nil:
		f.Writes = append(f.Writes, apply)
	case live.GetDeletionTimestamp() != nil:
		f.lackf("waiting for the old %s to be deleted%s", ref, holders(live))
	case w.o.title(live, false) != own:
		f.Blocked = w.blocked(ref, live)
	case !w.breaks(f, &apply, live):
		apply.TakeOver = object.Takeover(live, write.FieldOwner(w.o.Instance.Name))
		f.Writes = append(f.Writes, apply)
	}
}
