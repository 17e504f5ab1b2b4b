package plans

// dummyTask does nothing; it is done, or fails, as it is told to. One that is
// told neither will not be done by waiting. Packages use that for parameters that
// must not be changed, so it fails for good: a plan that cannot end would keep the
// Instance for ever.
type dummyTask struct{}

func (dummyTask) look(w *work) finding {
	switch {
	case w.spec.WantErr && w.spec.Fatal:
		return fatal("task %s fails for good, as it is told to", w.name)
	case w.spec.WantErr:
		return finding{failed: "task " + w.name + " fails, as it is told to"}
	case w.spec.Done:
		return finding{}
	default:
		return fatal("task %s can never be done; a Dummy is done only if its spec says done: true", w.name)
	}
}
