package decision

import (
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/rollout"
)

// pause is that a user has paused the workload, or an object that it would be rolled for; nil
// if neither. A workload that has no hash yet is not held by objects: it does not run with an
// earlier content.
func (w *Workload) pause() *rollout.Pause {
	if w.Settings.Paused {
		return w.Settings.PausedBy.Engine()
	}
	o := w.PausedFor()
	if o == nil {
		return nil
	}
	by, text := w.Config.PausedBy(*o), o.From(w.Namespace)+" is paused"
	if by.Reason != "" {
		text += ", " + by.Reason
	}
	return &rollout.Pause{By: by.By, Reason: text, Since: by.At}
}

// PausedFor is the object that a user has paused, and that the workload would be rolled for;
// nil if none, or if the workload itself is paused.
func (w *Workload) PausedFor() *content.Object {
	if w.Settings.Paused {
		return nil
	}
	if !w.Settings.Tracked || w.IsSettled() || w.Accepted() == "" && !w.IsOptedInLater() || w.Suspension.IsSuspended() {
		return nil
	}
	for i := range w.Uses {
		u := &w.Uses[i]
		changes := len(w.Change.Keys) == 0 || u.IsAmong(w.Namespace, w.Change.Keys)
		if w.Config.PausedBy(u.Object) != nil && !u.Ignored && changes {
			return &u.Object
		}
	}
	return nil
}
