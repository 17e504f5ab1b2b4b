package task

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// Preview is what a task of a step makes of its templates: the objects that it applies, or
// that it deletes.
type Preview struct {
	// Path is the task: phase, step and task.
	Path    rollout.Path
	Deletes bool
	// IsHook reports that what exists is deleted before it is applied; see [v1beta1.TaskSpec].
	IsHook bool
	// Objects are as they are applied, with labels, annotations, namespace and owner. An
	// Instance that does not exist yet owns nothing.
	Objects []*unstructured.Unstructured
}

// Preview renders the tasks of the plan of the execution, in the order of their steps. It
// is for those who show a plan before it runs: it decides nothing, and needs of the
// snapshot the Instance, the scopes of kinds, and of the objects those that exist.
func (r *Run) Preview(scope func(schema.GroupVersionKind) object.Scope) ([]Preview, error) {
	var all []Preview
	for _, phase := range r.Version.Spec.Plans[r.Execution.Plan].Phases {
		for _, step := range phase.Steps {
			for _, name := range step.Tasks {
				i := slices.IndexFunc(r.Version.Spec.Tasks, func(t v1beta1.Task) bool { return t.Name == name })
				if i < 0 {
					return nil, fmt.Errorf("step %s: task %s not found", step.Name, name)
				}
				w := &work{Run: r, o: r.Snapshot, phase: phase.Name, step: step.Name, name: name, spec: r.Version.Spec.Tasks[i].Spec}
				p, err := w.preview(r.Version.Spec.Tasks[i].Kind, scope)
				if err != nil {
					return nil, err
				}
				all = append(all, p)
			}
		}
	}
	return all, nil
}

func (w *work) preview(kind string, scope func(schema.GroupVersionKind) object.Scope) (Preview, error) {
	p := Preview{Path: rollout.Path{w.phase, w.step, w.name}, IsHook: w.spec.Hook != ""}
	var err error
	if p.Deletes, err = w.deletes(kind); err != nil {
		return p, err
	}
	objects, err := w.previewed(kind)
	if err != nil {
		return p, err
	}
	for _, u := range objects {
		if s := scope(u.GroupVersionKind()); kind != v1beta1.PipeTask && !p.Deletes {
			w.enhance(u, s)
			live := w.o.Objects[object.RefOf(u)]
			w.track(u, live)
			w.keepMarks(u, live)
			takePermission(u)
		} else {
			w.place(u, s)
		}
		w.clear(u)
	}
	p.Objects = slices.DeleteFunc(objects, func(u *unstructured.Unstructured) bool {
		live := w.o.Objects[object.RefOf(u)]
		return p.Deletes && live != nil && w.o.title(live, false) == foreign
	})
	return p, nil
}

// clear removes what is not known yet.
func (w *work) clear(u *unstructured.Unstructured) {
	if w.o.Instance.UID == "" {
		u.SetOwnerReferences(nil)
	}
	if annotations := u.GetAnnotations(); w.Execution.UID == "" && annotations != nil {
		delete(annotations, vocabulary.ExecutionAnnotation)
		u.SetAnnotations(annotations)
	}
}

// previewed are the objects of a task; of a Pipe its Pod, because what the files have is
// not known yet.
func (w *work) previewed(kind string) ([]*unstructured.Unstructured, error) {
	switch kind {
	case v1beta1.PipeTask:
		pod, err := w.pipePod()
		return []*unstructured.Unstructured{pod}, err
	case v1beta1.DeleteTask:
		return w.deletions()
	default:
		return w.makes(kind)
	}
}
