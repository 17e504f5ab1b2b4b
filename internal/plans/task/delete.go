package task

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/write"
)

// deleteTask deletes the objects of its templates, and is done when all are deleted.
// Kinds that the API server does not know have no objects.
type deleteTask struct{}

func (deleteTask) assess(w *work) Finding {
	if other := Undoes(w.Version.Spec, w.siblings(), w.name); other != "" {
		return fatal("%s", contradiction(w.name, other))
	}
	objects, err := w.objects(w.spec.Resources)
	if err != nil {
		return unrenderable(err)
	}
	f := Finding{}
	for _, u := range objects {
		scope, known := w.served(&f, u)
		if !known || scope == object.NoSuchKind {
			continue
		}
		w.place(u, scope)
		w.remove(&f, object.RefOf(u))
	}
	return f
}

// remove deletes an object, if it exists, and waits until it is deleted.
func (w *work) remove(f *Finding, ref object.Ref) {
	live, read := w.live(f, ref)
	if !read {
		return
	}
	f.Removes = append(f.Removes, ref)
	switch {
	case live == nil:
	case live.GetDeletionTimestamp() != nil:
		f.lackf("waiting for %s to be deleted%s", ref, holders(live))
	default:
		f.Writes = append(f.Writes, write.Write{Act: write.Delete, Ref: ref, UID: live.GetUID()})
	}
}

// holders are why an object that is being deleted still exists, as far as it says so itself:
// the client that has set a finalizer removes it.
func holders(live *unstructured.Unstructured) string {
	var others []string
	for _, finalizer := range live.GetFinalizers() {
		switch finalizer {
		case metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents: // of the deletion itself
		case "kubernetes.io/pvc-protection":
			return "; Pods use it"
		default:
			others = append(others, finalizer)
		}
	}
	if len(others) == 0 {
		return ""
	}
	return "; it has the finalizer " + strings.Join(others, ", ")
}

// siblings are the tasks of the step.
func (w *work) siblings() []string {
	for _, phase := range w.Version.Spec.Plans[w.Execution.Plan].Phases {
		for _, step := range phase.Steps {
			if phase.Name == w.phase && step.Name == w.step {
				return step.Tasks
			}
		}
	}
	return nil
}

// Contradiction is why a plan can never end: a task deletes what another one of the same step
// applies. It is empty if there is none.
func Contradiction(v *v1beta1.OperatorVersionSpec, plan string) string {
	for _, phase := range v.Plans[plan].Phases {
		for _, step := range phase.Steps {
			for _, name := range step.Tasks {
				if other := Undoes(v, step.Tasks, name); other != "" {
					return contradiction(name, other)
				}
			}
		}
	}
	return ""
}

func contradiction(deletes, applies string) string {
	return fmt.Sprintf("task %s deletes what task %s of the same step applies; give each of them a step of its own", deletes, applies)
}

// Undoes is the task, of those of a step, that applies what another of them deletes; empty
// if there is none. None of the two would ever be done: the one makes what the other waits
// for to be gone.
func Undoes(v *v1beta1.OperatorVersionSpec, step []string, deletes string) string {
	var deleted []string
	for _, t := range v.Tasks {
		if t.Name == deletes && t.Kind == v1beta1.DeleteTask {
			deleted = t.Spec.Resources
		}
	}
	for _, t := range v.Tasks {
		isOf := func(resource string) bool { return slices.Contains(deleted, resource) }
		if t.Kind == v1beta1.ApplyTask && slices.Contains(step, t.Name) && slices.ContainsFunc(t.Spec.Resources, isOf) {
			return t.Name
		}
	}
	return ""
}
