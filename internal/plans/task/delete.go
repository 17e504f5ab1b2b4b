package task

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/write"
)

// deleteTask deletes the objects of its templates, and is done when all are deleted.
// Kinds that the API server does not know have no objects.
type deleteTask struct{}

func (deleteTask) assess(w *work) Finding {
	if c := w.Contradiction(w.phase, w.step); c != nil {
		return fatal("%s; give each of them a step of its own", c)
	}
	objects, err := w.deletions()
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

// remove deletes an object, if it exists, and waits until it is deleted. One that belongs to
// others is left, as if it did not exist.
func (w *work) remove(f *Finding, ref object.Ref) {
	live, read := w.live(f, ref)
	if !read {
		return
	}
	f.Removes = append(f.Removes, ref)
	switch {
	case live == nil:
	case w.o.title(live, false) == foreign:
		f.Left = append(f.Left, fmt.Sprintf("%s is not deleted: it %s", ref, w.o.whose(live)))
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
