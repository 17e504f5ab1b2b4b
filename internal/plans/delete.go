package plans

// deleteTask deletes the objects of its templates, and is done when all are gone.
// Kinds that the API server does not know have no objects.
type deleteTask struct{}

func (deleteTask) look(w *work) finding {
	objects, err := w.objects(w.spec.Resources)
	if err != nil {
		return fatal("%s", err)
	}
	f := finding{}
	for _, u := range objects {
		scope, known := w.scope(&f, u)
		if !known || scope == NoSuchKind {
			continue
		}
		w.place(u, scope)
		w.remove(&f, refOf(u))
	}
	return f
}

// remove deletes an object, if it is there, and waits until it is gone.
func (w *work) remove(f *finding, ref Ref) {
	live, seen := w.live(f, ref)
	if !seen {
		return
	}
	f.removes = append(f.removes, ref)
	switch {
	case live == nil:
	case live.GetDeletionTimestamp() != nil:
		f.lackf("waiting for %s to be gone", ref)
	default:
		f.writes = append(f.writes, Write{Act: Delete, Ref: ref, UID: live.GetUID()})
	}
}
