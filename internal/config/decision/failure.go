package decision

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/pods"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/rollout"
)

// Failure is that a workload does not work with its present config.
type Failure struct {
	// Releases are those with which it failed: one of them is the cause.
	Releases []content.Release
	// Cause is how: "3 of 3 Pods CrashLoopBackOff".
	Cause string
	// Until is set of a workload that is ready again: when it counts as recovered.
	Until time.Time
	// kept is why the workload does not get its previous config back, though that is asked
	// for. Empty if it does, or if it is not asked for.
	kept string
}

// why is the failure as a clause about what was released.
func (f *Failure) why(namespace string) string {
	names := make([]string, len(f.Releases))
	for i, r := range f.Releases {
		names[i] = r.From(namespace)
	}
	return strings.Join(names, ", ") + " failed (" + f.Cause + ")"
}

// reason is the failure as a clause about the workload.
func (f *Failure) reason(namespace string) string {
	names := make([]string, len(f.Releases))
	for i, r := range f.Releases {
		names[i] = r.From(namespace)
	}
	text := f.Cause + " (changed: " + strings.Join(names, ", ") + ")"
	if f.kept != "" {
		text += "; the previous config cannot be restored: " + f.kept
	}
	return text
}

// NeedsPods is true if it depends on the Pods of a workload whether it has failed with its
// config: it was rolled and is not ready, or it has failed before.
func (w *Workload) NeedsPods(now time.Time) bool {
	return w.mayFail(now) || w.mayFailMixed(now) || w.Settings.Tracked && w.IsCurrent() && slices.ContainsFunc(w.Records.Failed, w.isPresent)
}

// mayFail is true if the config that the ring rolled last may turn out not to work. Not of
// a workload that was ready for long, nor of one that has just begun.
func (w *Workload) mayFail(now time.Time) bool {
	roll := &w.Records.Roll
	return w.Settings.Tracked && w.IsSettled() && !w.isUp() && !roll.At.IsZero() && !w.hasBegun() && w.maySettle(roll.At, now)
}

// hasBegun is true of a workload that got its first hash while it was not ready, as one does that was
// just created: there is nothing to compare its Pods with, and no content that it was rolled for.
func (w *Workload) hasBegun() bool {
	roll := &w.Records.Roll
	return roll.Unready && roll.Was == ""
}

// maySettle is true while what becomes of a workload may be the result of a roll at some moment.
func (w *Workload) maySettle(at, now time.Time) bool {
	return workload.IsUnfinished(w.Object) || now.Before(at.Add(workload.SettlesWithin(w.Object)))
}

// Judge is to be called once the workload was observed: a Deployment has failed that made no
// progress for longer than it may, also if Kubernetes does not say so.
func (w *Workload) Judge(now time.Time) {
	if at := workload.StallsAt(w.Object); w.Health.Health == rollout.Progressing && !at.IsZero() && !now.Before(at) {
		w.Health.Health, w.Health.Reason = rollout.Failed, "Progress deadline exceeded"
	}
}

// isUp is true if all its Pods are ready.
func (w *Workload) isUp() bool {
	return w.Health.Health == rollout.Healthy && workload.IsReady(w.Object)
}

// isPresent is true if the config of a recorded failure is the present one.
func (w *Workload) isPresent(f workload.Failed) bool {
	r, ok := w.Config.Release(f.Object())
	return ok && f.Is(r)
}

// runs is true if new Pods of the workload get the present content of the object of a failure.
func (w *Workload) runs(f *workload.Failed) bool {
	r, ok := w.Config.Release(f.Object())
	return ok && w.Runs(r)
}

// isRecovered is true if a workload that had failed has been ready for so long that its
// containers do not crash any more, with the config that it has now.
func (w *Workload) isRecovered(now time.Time) bool {
	if !w.IsCurrent() || !w.isUp() || w.Pods.Failing > 0 || w.Pods.Unknown != "" {
		return false
	}
	return !w.Pods.Readable || !w.Pods.ReadySince.IsZero() && !now.Before(w.Pods.ReadySince.Add(pods.CrashWindow))
}

// recoversAt is when a workload that has failed and is ready counts as recovered, zero if
// that does not follow from time alone.
func (w *Workload) recoversAt() time.Time {
	if len(w.Records.Failed) == 0 || !w.isUp() || w.Pods.ReadySince.IsZero() {
		return time.Time{}
	}
	return w.Pods.ReadySince.Add(pods.CrashWindow)
}

// counts is true if a failure at some time still counts for an object: a user has not
// asked since to try again.
func (w *Workload) counts(o content.Object, at, now time.Time) bool {
	return !w.Config.RetriedAt(o, now).After(at)
}

// recorded is the record of a failure with a release that still counts, nil if there is none.
func (w *Workload) recorded(r content.Release, now time.Time) *workload.Failed {
	for i := range w.Records.Failed {
		if f := &w.Records.Failed[i]; f.Is(r) && w.counts(r.Object, f.At, now) {
			return f
		}
	}
	return nil
}

// onTrialFor are the releases that a workload was rolled for, if something says that it
// may not work with them.
func (w *Workload) onTrialFor(now time.Time) []content.Release {
	if !w.mayFail(now) || !w.isQuestionable(now) || w.Records.Roll.Template != workload.TemplateDigest(w.Object) {
		return nil
	}
	return slices.DeleteFunc(w.ReleasesOf(w.Records.Roll.Changed), func(r content.Release) bool {
		_, exists := w.Config.DigestOf(r.Object)
		missing := slices.ContainsFunc(w.Missing, func(m content.Missing) bool { return m.Object == r.Object })
		return !w.Runs(r) || missing && !exists || !w.counts(r.Object, w.Records.Roll.At, now)
	})
}

// isQuestionable is true if something says that a workload that was rolled does not
// become ready, or nothing can say that it does.
func (w *Workload) isQuestionable(now time.Time) bool {
	if w.Records.Roll.Unready && !w.failsNewly() || w.lacksRoom(now) != "" {
		return false
	}
	return w.Pods.Failing > 0 || w.Pods.Unknown != "" || w.Health.Health == rollout.Failed && !w.startsLate(now) || w.isOverdue(now)
}

// startsLate is true while new Pods may become ready that had no room until its deadline was over, or nearly.
func (w *Workload) startsLate(now time.Time) bool {
	return !w.Pods.LastStart.IsZero() && now.Before(w.Pods.LastStart.Add(w.timeToStart()))
}

// timeToStart is how long a Pod may take to become ready.
func (w *Workload) timeToStart() time.Duration {
	if d, ok := w.Object.(*appsv1.Deployment); ok && d.Spec.ProgressDeadlineSeconds != nil {
		return min(time.Duration(*d.Spec.ProgressDeadlineSeconds)*time.Second, workload.ProgressDeadline)
	}
	return workload.ProgressDeadline
}

// NeedsBaseline is true of a workload that is to be rolled and is not ready, for another reason
// than its config, so that its new Pods are compared with those before. One whose Pods are all
// ready, and whose controller has yet to see an edit, needs none, nor does one without a hash.
func (w *Workload) NeedsBaseline(now time.Time) bool {
	return w.Settings.Tracked && !w.Settings.Unstoppable && !w.IsCurrent() && w.Hashes != nil && w.Suspension.IsSettled() &&
		w.Accepted() != "" && !workload.IsReady(w.Object) && w.isUnreadyBefore(now)
}

// failsNewly is true if the new Pods of a workload that was not ready before do what its Pods did
// not do then: they crash, or none of them becomes ready where some were. What is not known yet
// may be so.
func (w *Workload) failsNewly() bool {
	switch roll := &w.Records.Roll; {
	case w.Pods.Unknown != "":
		return true
	case w.Pods.Failing > 0:
		return w.Pods.Reason != roll.Failing
	default:
		return roll.Available > 0 && w.Pods.Started > 0 && w.Pods.Ready == 0
	}
}

// lacksRoom is why new Pods of a workload do not run, though nothing says that their config does not
// work: all that started are ready, and others cannot start; or none has started in time. Empty
// if that is not so.
func (w *Workload) lacksRoom(now time.Time) string {
	if w.isUp() || !w.Pods.Readable || w.Pods.Failing > 0 || w.Pods.Ready < w.Pods.Started {
		return ""
	}
	switch refused := workload.RefusedPods(w.Object); {
	case refused != "":
		return "no room for new Pods: " + refused
	case w.Pods.Unschedulable > 0:
		return fmt.Sprintf("no room for new Pods: %d of %d Pods unschedulable", w.Pods.Unschedulable, w.Pods.Of)
	case w.Pods.Started == 0 && w.isOverdue(now):
		return "no new Pod was scheduled"
	default:
		return ""
	}
}

// isNoWorse is true of a workload that was not ready before if its new Pods show that its config
// works: one of them is ready, none fails, and as many Pods are available as before.
func (w *Workload) isNoWorse() bool {
	roll := &w.Records.Roll
	return roll.Unready && !w.hasBegun() && w.Pods.Readable && w.Pods.Ready > 0 && w.Pods.Failing == 0 && workload.Available(w.Object) >= roll.Available
}

// isOverdue is true of a workload that takes no place in a budget any more, and is not
// ready either.
func (w *Workload) isOverdue(now time.Time) bool {
	return workload.IsReplacing(w.Object) && !now.Before(w.Records.Roll.At.Add(workload.ProgressDeadline))
}

// onTrial is a workload that was rolled as the engine sees it.
func (w *Workload) onTrial(now time.Time) rollout.Unit {
	u := rollout.Unit{Name: w.called(w.Namespace), StartedAt: w.Records.Roll.At}
	u.Policy.Deadline = workload.TimeToRoll(w.Object)
	u.Leaf = rollout.Leaf{Current: released, Target: released, Health: rollout.Progressing, Reason: w.Health.Reason}
	switch {
	case w.Pods.Failing > 0:
		u.Leaf.Health, u.Leaf.Reason = rollout.Failed, w.Pods.Cause()
	case w.Pods.Unknown != "": // they may do as before, or have no room
		u.Policy.Deadline = noDeadline
	case w.Pods.Readable && w.Pods.Started == 0: // its config cannot be the cause yet
		u.Policy.Deadline = noDeadline
	case w.startsLate(now):
		u.Policy.Deadline = noDeadline
	case w.Health.Health == rollout.Failed:
		u.Leaf.Health = rollout.Failed
	}
	return u
}

// called is how sentences name a workload that failed: "deployment/app1".
func (w *Workload) called(from string) string {
	name := strings.ToLower(w.Kind) + "/" + w.Name.Name
	if from != w.Namespace {
		return w.Namespace + "/" + name
	}
	return name
}

// failed is what must be recorded of failures: those of the past with another config, and
// the present one.
func (w *Workload) failed(now time.Time) []workload.Failed {
	if !w.Settings.Tracked {
		return nil
	}
	var failed []workload.Failed
	if w.failure != nil {
		for _, r := range w.failure.Releases {
			if old := w.recorded(r, now); old != nil {
				failed = append(failed, *old)
			} else {
				failed = append(failed, workload.FailedWith(r, now.UTC().Truncate(time.Millisecond), w.failure.Cause, w.Template.Hash))
			}
		}
	}
	for _, f := range w.Records.Failed {
		if w.keeps(&f, now) && !slices.ContainsFunc(failed, f.IsAgain) {
			failed = append(failed, f)
		}
	}
	return failed[:min(len(failed), workload.MostFailed)]
}

// keeps is true if a recorded failure may still count: its object is used, no user has asked
// to try again, and the workload has not been ready with the same config.
func (w *Workload) keeps(f *workload.Failed, now time.Time) bool {
	used := slices.ContainsFunc(w.Uses, func(u content.Use) bool { return u.Object == f.Object() && !u.Ignored })
	works := w.isPresent(*f) && w.runs(f) && w.isRecovered(now)
	return used && !works && w.counts(f.Object(), f.At, now)
}

// isUnreadyBefore is true if a workload that is about to be rolled is not ready, and what
// the ring has rolled is not the cause.
func (w *Workload) isUnreadyBefore(now time.Time) bool {
	roll := &w.Records.Roll
	if workload.HasNoPods(w.Object) { // it is as ready as it may be, and shows nothing
		return true
	}
	if w.isUp() || w.hasFailedSince() && !roll.Unready { // one that was not ready before it failed has not become well by that
		return false
	}
	completed := !workload.IsUnfinished(w.Object) && (w.Pods.Failing == 0 || !w.maySettle(roll.At, now)) // what crashes may do so late
	return w.hasFailedSince() || !w.rolling(now) || completed || roll.Unready || roll.Template != workload.TemplateDigest(w.Object)
}

// hasFailedSince is true if a failure of the workload is recorded since the ring has rolled it.
func (w *Workload) hasFailedSince() bool {
	return slices.ContainsFunc(w.Records.Failed, func(f workload.Failed) bool { return !f.At.Before(w.Records.Roll.At) })
}

// baseline is how a workload that is not ready does that is about to be rolled: how many Pods are
// available, and why others fail. Of one that was not ready before its last roll either, and does what
// may be the result of that, it is how it did before that. The first hash is no new content, and
// the Pods were perhaps not known then.
func (w *Workload) baseline(now time.Time) (available int32, failing string) {
	roll := &w.Records.Roll
	if w.hasFailedSince() || roll.Unready && roll.Was != "" && w.maySettle(roll.At, now) && roll.Template == workload.TemplateDigest(w.Object) {
		return roll.Available, roll.Failing
	}
	return workload.Available(w.Object), w.Pods.Reason
}

// before is the config to go back to if the one that a workload is rolled for fails: the one
// that it has, unless that has failed too.
func (w *Workload) before() *workload.Before {
	earlier := w.Records.Answered.Before
	failed := slices.ContainsFunc(w.Records.Failed, func(f workload.Failed) bool {
		p, ok := w.Pinning.Pins.Of(f.Kind, f.Name)
		return ok && f.Namespace == w.Namespace && p.Digest == pin.ShortDigest(f.Digest)
	})
	switch {
	case failed:
		return earlier
	case !w.isUp() && len(earlier.Parsed()) > 0:
		return earlier
	default:
		return w.Present()
	}
}

// failedNote is the Event of a failure.
func (w *Workload) failedNote() string {
	r := w.failure.Releases[0]
	return fmt.Sprintf("%s failed on %s (%s)%s", r.From(w.Namespace), w.called(w.Namespace), w.failure.Cause, keptText(w.kept))
}
