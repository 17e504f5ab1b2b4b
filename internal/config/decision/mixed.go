package decision

import (
	"slices"
	"time"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/rollout"
)

// isMixed is true of a workload that got its config together with another change of its Pod
// template, or whose template was changed by another client since: what its Pods do may be the
// result of either.
func (w *Workload) isMixed() bool {
	roll := &w.Records.Roll
	if roll.Admitted.After(roll.At) {
		return roll.Was != "" && roll.Was != w.Accepted()
	}
	return !roll.At.IsZero() && roll.Template != "" && roll.Template != workload.TemplateDigest(w.Object)
}

// mayFailMixed is [Workload.mayFail] for such a workload.
func (w *Workload) mayFailMixed(now time.Time) bool {
	return w.isMixed() && w.maySettle(w.startedAt(), now) && w.Settings.Tracked && w.IsCurrent() && w.IsSettled() && !w.isUp()
}

// proves is true if a workload shows that a content works: it has the content, and is ready.
func (w *Workload) proves(r content.Release) bool {
	if !w.Settings.Tracked || w.isMute() || !w.isDone() || w.Pods.Failing > 0 || !slices.Contains(w.ReleasesOf(nil), r) || !w.Runs(r) {
		return false
	}
	kept, _ := workload.Kept(w.Object)
	return kept == 0 && (w.IsCurrent() || w.Hashes != nil && !slices.Contains(w.Lacks(w.Change.Keys), r))
}

// isProven is true if some workload of a namespace proves a content.
func isProven(workloads []Workload, namespace string, r content.Release) bool {
	return slices.ContainsFunc(workloads, func(w Workload) bool { return w.Namespace == namespace && w.proves(r) })
}

// isNext is true if the workload would be rolled for a release.
func (w *Workload) isNext(r content.Release) bool {
	return w.Settings.Tracked && w.Hashes != nil && !w.IsCurrent() && slices.Contains(w.Lacks(w.Change.Keys), r)
}

// addMixed adds the releases that a workload got together with another change, if its new Pods
// crash: they count only to keep others from a content that nothing has proven yet.
func (j *judgment) addMixed(i int, w *Workload) {
	crashes := w.Pods.Failing > 0 && w.Pods.Ready == 0
	if !w.mayFailMixed(j.now) || !crashes {
		return
	}
	for _, r := range w.ReleasesOf(w.Records.Roll.Changed) {
		if !w.Runs(r) || !w.counts(r.Object, w.startedAt(), j.now) || w.recorded(r, j.now) != nil || isProven(j.workloads, w.Namespace, r) {
			continue
		}
		if !slices.ContainsFunc(j.workloads, func(o Workload) bool { return o.isNext(r) && w.Config.CountsIn(r.Object, w.Namespace, o.Namespace) }) {
			continue
		}
		unit := rollout.Unit{
			Name: w.called(w.Namespace), StartedAt: w.startedAt(), Leaf: failedLeaf(w.Pods.Cause() + "; its Pod template was changed by another client, too"),
		}
		j.trials = append(j.trials, trial{workload: i, release: r, unit: unit, present: true, at: j.now})
	}
}
