package task

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/object"
)

// Contradiction is a task that deletes what another one of the same step applies. Neither of the
// two would ever be done: the one creates what the other waits for to be deleted.
type Contradiction struct {
	// Object is an object, or a template that cannot be rendered.
	Object           object.Ref
	Deletes, Applies string
}

// String says what contradicts what.
func (c *Contradiction) String() string {
	return fmt.Sprintf("task %s deletes %s, which task %s of the same step applies", c.Deletes, c.Object, c.Applies)
}

// Contradiction finds tasks of a step that contradict each other, nil if none do.
func (r *Run) Contradiction(phase, step string) *Contradiction {
	applied := map[object.Ref]string{}
	type deletion struct {
		object.Ref
		by string
	}
	var deleted []deletion
	for _, name := range r.tasksOf(phase, step) {
		refs, deletes := r.effect(phase, step, name)
		for _, ref := range refs {
			if deletes {
				deleted = append(deleted, deletion{ref, name})
			} else {
				applied[ref] = name
			}
		}
	}
	for _, d := range deleted {
		if other, ok := applied[d.Ref]; ok {
			return &Contradiction{d.Ref, d.by, other}
		}
	}
	return nil
}

// effect names what a task applies, or what it deletes, without versions and namespaces: all are
// of one namespace. If its templates cannot be rendered it names those.
func (r *Run) effect(phase, step, name string) (refs []object.Ref, deletes bool) {
	i := slices.IndexFunc(r.Version.Spec.Tasks, func(t v1beta1.Task) bool { return t.Name == name })
	if i < 0 {
		return nil, false
	}
	t := &r.Version.Spec.Tasks[i]
	w := &work{Run: r, o: r.Snapshot, phase: phase, step: step, name: name, spec: t.Spec}
	deletes, err := w.deletes(t.Kind)
	if err != nil {
		return nil, false
	}
	kind := t.Kind
	if deletes {
		kind = v1beta1.ApplyTask // the same objects
	}
	objects, err := w.makes(kind)
	if err != nil {
		for _, template := range t.Spec.Resources {
			refs = append(refs, object.Ref{GroupVersionKind: schema.GroupVersionKind{Kind: "template"}, Name: template})
		}
		return refs, deletes
	}
	for _, u := range objects {
		refs = append(refs, object.Ref{GroupVersionKind: u.GroupVersionKind().GroupKind().WithVersion(""), Name: u.GetName()})
	}
	return refs, deletes
}

// tasksOf are the names of the tasks of a step.
func (r *Run) tasksOf(phase, step string) []string {
	for _, p := range r.Version.Spec.Plans[r.Execution.Plan].Phases {
		for _, s := range p.Steps {
			if p.Name == phase && s.Name == step {
				return s.Tasks
			}
		}
	}
	return nil
}
