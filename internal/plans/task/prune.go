package task

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// Prune removes the objects of an inventory that no plan renders any more. It belongs to
// an execution that applies the spec. What holds data or other objects is never pruned,
// and nothing is while a template cannot be rendered, which the finding then says.
func (r *Run) Prune(inventory []v1beta1.InventoryEntry) Finding {
	f := Finding{}
	if !r.Execution.Advances || r.Version.KeepsAll {
		return f
	}
	rendered, unknown := r.rendered()
	w := &work{Run: r, o: r.Snapshot}
	var outdated []object.Ref
	for _, entry := range inventory {
		if ref := object.EntryRef(entry); !isKept(ref) && !slices.ContainsFunc(rendered, ref.Resembles) {
			outdated = append(outdated, ref)
		}
	}
	if unknown != "" && len(outdated) > 0 {
		f.Left = []string{fmt.Sprintf("%s may be outdated and is not deleted: %s", message.Join(outdated, ", ", object.Ref.String), r.Snapshot.Hidden.In(unknown))}
		return f
	}
	for _, ref := range outdated {
		w.prune(&f, ref)
	}
	for i := range f.Writes {
		f.Writes[i].Execution = r.Execution.UID
	}
	if w.forbidden != "" {
		f = Finding{Needs: f.Needs, Blocked: &rollout.Block{Reason: reasons.NotPermitted, Message: w.forbidden}}
	}
	return f
}

func isKept(ref object.Ref) bool {
	return slices.Contains([]schema.GroupKind{object.NamespaceKind, object.CRDKind, object.ClaimKind, object.VolumeKind}, ref.GroupKind())
}

func (w *work) prune(f *Finding, ref object.Ref) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(ref.GroupVersionKind)
	if _, known := w.served(f, u); !known {
		return
	}
	ref.GroupVersionKind = u.GroupVersionKind()
	live, read := w.live(f, ref)
	if !read {
		return
	}
	if live != nil && (w.o.title(live, false) != own || vocabulary.Prune.Get(live.GetAnnotations()) == "false" || isKeptByChart(live)) {
		return
	}
	w.remove(f, ref)
}

// rendered are the objects that any plan would apply, as far as is known, and why others are not.
func (r *Run) rendered() (all []object.Ref, unknown string) {
	for _, name := range slices.Sorted(maps.Keys(r.Version.Spec.Plans)) {
		as, e := *r, *r.Execution
		e.Plan, as.Execution = name, &e
		for _, phase := range r.Version.Spec.Plans[name].Phases {
			for _, step := range phase.Steps {
				refs, err := as.renderedBy(phase.Name, &step)
				if err != nil && unknown == "" {
					unknown = "plan " + name + ": " + err.Error()
				}
				all = append(all, refs...)
			}
		}
	}
	return all, unknown
}

func (r *Run) renderedBy(phase string, step *v1beta1.Step) (all []object.Ref, first error) {
	for _, t := range r.Version.Spec.Tasks {
		if !slices.Contains(step.Tasks, t.Name) {
			continue
		}
		w := &work{Run: r, o: r.Snapshot, phase: phase, step: step.Name, name: t.Name, spec: t.Spec}
		objects, err := w.makes(t.Kind)
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		for _, u := range objects {
			all = append(all, object.RefOf(u))
		}
	}
	return all, first
}

// makes are the objects that a task of a kind applies.
func (w *work) makes(kind string) ([]*unstructured.Unstructured, error) {
	switch kind {
	case v1beta1.ApplyTask, v1beta1.ToggleTask:
		return w.objects(w.spec.Resources)
	case v1beta1.KudoOperatorTask:
		child, err := w.child(versionName(w.spec))
		return []*unstructured.Unstructured{child}, err
	case v1beta1.PipeTask:
		return w.artifacts(), nil
	default:
		return nil, nil
	}
}
