package workload

import (
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/reloader"
)

// ReadRun reads what is not rolled, a CronJob, a Job or a Rollout of Argo, of which annotations of Reloader ask that it
// follows its config; nil if none do. --auto-reload-all does so for Rollouts alone: a run may do what cannot be undone.
func ReadRun(obj client.Object, o *reloader.Options) *Workload {
	if o == nil || o.Skips(obj.GetNamespace()) || obj.GetDeletionTimestamp() != nil {
		return nil
	}
	explicit := *o
	explicit.AutoAll = o.AutoAll && KindOf(obj) == ArgoRollout
	if w := ReadReloaded(obj, &explicit); w.Reloaded != nil {
		return &w
	}
	return nil
}

// runOf heads the record on what has no hash.
const runOf = "run"

// RunRecord is the record on it, empty if there is none that can be read.
func (w *Workload) RunRecord() string {
	if _, ok := readSeenOf(w.seen, runOf); !ok {
		return ""
	}
	return w.seen
}

// NextRunRecord is the record of what counts now. It differs from every earlier one, because Jobs are named by
// them.
func (w *Workload) NextRunRecord(now time.Time) string {
	if s, ok := readSeenOf(w.seen, runOf); ok && now.Unix() <= s.at.Unix() {
		now = s.at.Add(time.Second)
	}
	return textOf(runOf, now, w.contents())
}

// IsRunRecorded reports whether the record is of what counts now.
func (w *Workload) IsRunRecorded() bool {
	s, ok := readSeenOf(w.seen, runOf)
	return ok && maps.Equal(s.contents, w.contents())
}

// RunFor are the objects that have changed since the record, for which it is to be run or restarted.
func (w *Workload) RunFor() []content.Object {
	s, ok := readSeenOf(w.seen, runOf)
	var changed []content.Object
	for i := range w.Uses {
		if u := &w.Uses[i]; ok && !u.Ignored && !slices.Contains(changed, u.Object) && w.isChanged(u.Object, s) {
			changed = append(changed, u.Object)
		}
	}
	return changed
}

// RunContents identifies the contents that count now.
func (w *Workload) RunContents() string { return textOf(runOf, time.Time{}, w.contents()) }

// IsRunPaused reports whether a user has paused it, or an object that has changed since the record.
func (w *Workload) IsRunPaused() bool {
	return w.Settings.Paused || slices.ContainsFunc(w.RunFor(), func(o content.Object) bool { return w.Config.PausedBy(o) != nil })
}

// MissedRun reports whether Reloader has written into the Pod template that it acted for another content than there is. With
// the strategy restart it writes nothing there, and what it says is of an earlier time.
func (w *Workload) MissedRun() bool {
	return w.Reloaded.missed && !w.Reloaded.options.Restarts(w.Object.GetAnnotations())
}
