package task

import "github.com/spillway-dev/spillway/internal/plans/object"

// deleteTask deletes the objects of its templates, and is done when all are deleted.
// Kinds that the API server does not know have no objects.
type deleteTask struct{}

func (deleteTask) assess(w *work) Finding {
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
		f.lackf("waiting for %s to be deleted", ref)
	default:
		f.Writes = append(f.Writes, Write{Act: Delete, Ref: ref, UID: live.GetUID()})
	}
}
