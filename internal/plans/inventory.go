package plans

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// noteObjects keeps the inventory. An object is in it before it is applied, and
// until it is gone.
func (r *run) noteObjects(f *finding) {
	for _, ref := range f.applies {
		if !slices.ContainsFunc(r.status.Inventory, func(e v1beta1.InventoryEntry) bool { return entryRef(e).same(ref) }) {
			r.status.Inventory = append(r.status.Inventory, v1beta1.InventoryEntry{
				Group: ref.Group, Version: ref.Version, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name,
			})
		}
	}
	for _, ref := range f.removes {
		if live, seen := r.o.Objects[ref]; seen && live == nil {
			r.status.Inventory = slices.DeleteFunc(r.status.Inventory, func(e v1beta1.InventoryEntry) bool { return entryRef(e).same(ref) })
		}
	}
}

func entryRef(e v1beta1.InventoryEntry) Ref {
	return Ref{
		GroupVersionKind: schema.GroupVersionKind{Group: e.Group, Version: e.Version, Kind: e.Kind},
		Namespace:        e.Namespace, Name: e.Name,
	}
}

// isOver is true once all steps are complete.
func (r *run) isOver() bool {
	return !slices.ContainsFunc(r.phases, func(p v1beta1.PhaseStatus) bool {
		return slices.ContainsFunc(p.Steps, func(s v1beta1.StepStatus) bool { return s.Status != v1beta1.Complete })
	})
}

// prune removes what is in the inventory and is rendered by no plan any more. It
// is part of an execution that brings the spec about. What holds data or other
// objects is never pruned, and nothing is while a template cannot be rendered.
func (r *run) prune() *finding {
	f := &finding{}
	if !r.execution.Advances || r.keepsAll {
		return f
	}
	rendered, ok := r.rendered()
	if !ok {
		return f
	}
	w := &work{o: r.o, run: r}
	for _, entry := range r.status.Inventory {
		if ref := entryRef(entry); !isKept(ref) && !slices.ContainsFunc(rendered, ref.resembles) {
			w.pruneOne(f, ref)
		}
	}
	if w.unseen != "" {
		f = &finding{needs: f.needs, blocked: &rollout.Block{Reason: ReasonUnseen, Message: w.unseen}}
	}
	return f
}

// resembles compares names where it is not known yet who has a namespace.
func (r Ref) resembles(other Ref) bool {
	return r.GroupKind() == other.GroupKind() && r.Name == other.Name
}

func isKept(ref Ref) bool {
	return slices.Contains([]schema.GroupKind{namespaceKind, crdKind, claimKind}, ref.GroupKind())
}

func (w *work) pruneOne(f *finding, ref Ref) {
	live, seen := w.live(f, ref)
	if !seen {
		return
	}
	if live != nil && (!w.o.isOurs(live) || vocabulary.Prune.Get(live.GetAnnotations()) == "false") {
		return
	}
	w.remove(f, ref)
}

// rendered are the objects that any plan would apply; false if that is not known.
func (r *run) rendered() ([]Ref, bool) {
	var all []Ref
	for name, plan := range r.version.Plans {
		e := *r.execution
		e.Plan = name
		as := &run{o: r.o, execution: &e, version: r.version, values: r.values, pipes: pipesOf(r.o.Instance.Name, name, r.version), status: r.status}
		for _, phase := range plan.Phases {
			for _, step := range phase.Steps {
				refs, ok := as.renderedBy(phase.Name, &step)
				if !ok {
					return nil, false
				}
				all = append(all, refs...)
			}
		}
	}
	return all, true
}

func (r *run) renderedBy(phase string, step *v1beta1.Step) ([]Ref, bool) {
	var all []Ref
	for _, t := range r.version.Tasks {
		if !slices.Contains(step.Tasks, t.Name) {
			continue
		}
		objects, err := (&work{o: r.o, run: r, phase: phase, step: step.Name, name: t.Name, spec: t.Spec}).makes(t.Kind)
		if err != nil {
			return nil, false
		}
		for _, u := range objects {
			all = append(all, refOf(u))
		}
	}
	return all, true
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
		return w.artefacts(), nil
	default:
		return nil, nil
	}
}

func (w *work) artefacts() []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, file := range w.spec.Pipe {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: file.Kind})
		u.SetName(w.artefact(file.Key))
		all = append(all, u)
	}
	return all
}
