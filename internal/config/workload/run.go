package workload

import (
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/reloader"
)

// ReadRun reads a CronJob of which annotations of Reloader ask for a run when its config changes; nil if none do.
// --auto-reload-all does not: a run may do what cannot be undone.
func ReadRun(c *batchv1.CronJob, o *reloader.Options) *Workload {
	if o == nil || o.Skips(c.Namespace) || c.DeletionTimestamp != nil {
		return nil
	}
	explicit := *o
	explicit.AutoAll = false
	if w := ReadReloaded(c, &explicit); w.Reloaded != nil {
		return &w
	}
	return nil
}

// runOf heads the record on a CronJob, which has no hash.
const runOf = "run"

// RunRecord is the record on a CronJob, empty if there is none that can be read.
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

// RunFor are the objects that have changed since the record, by which a CronJob is to be run.
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
