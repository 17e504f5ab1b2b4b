package task

// dummyTask does nothing; its spec says whether it is done or fails. A Dummy whose
// spec says neither is never done. Packages use that for parameters that must not be
// changed, so it fails for good: a plan that cannot end would lock the Instance.
type dummyTask struct{}

func (dummyTask) assess(w *work) Finding {
	switch {
	case w.spec.WantErr && w.spec.Fatal:
		return fatal("task %s failed: its spec sets wantErr and fatal", w.name)
	case w.spec.WantErr:
		return Finding{Failed: "its spec sets wantErr"}
	case w.spec.Done:
		return Finding{}
	default:
		return fatal("task %s can never be done: a Dummy is done only if its spec sets done: true", w.name)
	}
}
