package decision

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// back is that a workload gets the config back that it had before it was rolled for what has
// failed.
type back struct {
	// why is the failure: "Secret db@9676b5e failed (3 of 3 Pods CrashLoopBackOff)".
	why  string
	pins pin.Pins
}

// goBack finds the workloads that get their previous config back: those of which a failure is
// recorded, and of a group of zones first all others whose new Pods would get what has failed.
func (j *judgment) goBack() {
	for i := range j.workloads {
		w := &j.workloads[i]
		if w.failure == nil || w.isUp() || !w.isRecorded(j.now) || !j.asksToGoBack(w, w.failure.Releases) {
			continue
		}
		others := j.othersOf(i)
		if w.failure.kept = j.refusesToGoBack(w, others); w.failure.kept != "" {
			continue
		}
		why := w.failure.why(w.Namespace)
		for _, k := range others {
			j.workloads[k].back = j.workloads[k].backFor(why)
		}
		if len(others) == 0 { // the zones of a group go on once this one is ready
			w.back = w.backFor(why)
		}
	}
}

// refusesToGoBack is why a workload, and the other zones of its group, keep a config that has
// failed.
func (j *judgment) refusesToGoBack(w *Workload, others []int) string {
	if why := cmp.Or(w.refusesToGoBack(w.failure.Releases), j.pausedBy(w)); why != "" {
		return why
	}
	for _, k := range others {
		o := &j.workloads[k]
		if !j.asksToGoBack(o, w.failure.Releases) {
			return o.called(w.Namespace) + " of the same group does not ask for it (" + vocabulary.OnConfigFailure.Native + ")"
		}
		if why := o.refusesToGoBack(w.failure.Releases); why != "" {
			return o.called(w.Namespace) + " of the same group cannot: " + why
		}
	}
	return ""
}

// othersOf are the other zones of the group of a workload, whose new Pods would get what it
// has failed with.
func (j *judgment) othersOf(i int) []int {
	w := &j.workloads[i]
	if w.Zone.Group == "" {
		return nil
	}
	var others []int
	for k := range j.workloads {
		o := &j.workloads[k]
		same := k != i && o.Namespace == w.Namespace && o.Zone.Group == w.Zone.Group && o.Settings.Tracked && o.failure == nil
		if same && o.IsCurrent() && slices.ContainsFunc(w.failure.Releases, o.gets) {
			others = append(others, k)
		}
	}
	return others
}

// gets is true if new Pods of the workload get a release.
func (w *Workload) gets(r content.Release) bool {
	uses := func(u content.Use) bool { return u.Object == r.Object && !u.Ignored }
	return slices.ContainsFunc(w.Uses, uses) && w.Runs(r)
}

// isRecorded is true if the failure is recorded on the workload: it holds the others also once
// the workload has its previous config.
func (w *Workload) isRecorded(now time.Time) bool {
	return !slices.ContainsFunc(w.failure.Releases, func(r content.Release) bool { return w.recorded(r, now) == nil })
}

// asksToGoBack is true if the workload says that it gets its previous config back, or if it
// says nothing and what it has failed with does.
func (j *judgment) asksToGoBack(w *Workload, failed []content.Release) bool {
	if w.Settings.OnFailure != "" {
		return w.Settings.OnFailure == content.OnFailureRollback
	}
	return slices.ContainsFunc(failed, func(r content.Release) bool { return j.isReturned(w, r.Object) })
}

// isReturned is true if the object that a workload has failed with says that it goes back, or
// if it says nothing and the policy does.
func (j *judgment) isReturned(w *Workload, failed content.Object) bool {
	asked := w.Config.OnFailure(failed)
	if failed.Namespace == w.Namespace && (asked == content.OnFailureRollback || asked == content.OnFailureStop) {
		return asked == content.OnFailureRollback
	}
	p := j.o.policyFor(w, failed)
	return p != nil && p.RollsBack
}

// pausedBy is that a policy for what a workload has failed with is paused, empty if none is.
func (j *judgment) pausedBy(w *Workload) string {
	for _, r := range w.failure.Releases {
		if p := j.o.policyFor(w, r.Object); p != nil && p.Pause != nil {
			return p.String() + " is paused"
		}
	}
	return ""
}

// refusesToGoBack is why a workload keeps a config that has failed, empty if it can go back.
func (w *Workload) refusesToGoBack(failed []content.Release) string {
	before := w.Records.Answered.Before.Parsed()
	switch {
	case !w.Pinning.On:
		return "it does not keep the config of its revisions (" + vocabulary.PinConfig.Native + ")"
	case w.Settings.Paused:
		return "it is paused"
	case len(before) == 0:
		return "no earlier config is recorded"
	case !w.changesOneOf(before, failed):
		return "the config before has the same content of what failed, or does not pin it"
	case w.Records.Roll.Template != workload.TemplateDigest(w.Object):
		return "its Pod template was changed since"
	case len(w.Pinning.LostBefore) > 0:
		return message.Join(w.Pinning.LostBefore, ", ", func(p pin.Pin) string { return string(p.Kind) + " " + p.Snapshot() }) + " not found"
	default:
		return ""
	}
}

// changesOneOf is true if earlier pins have another content of something that has failed.
func (w *Workload) changesOneOf(before pin.Pins, failed []content.Release) bool {
	return slices.ContainsFunc(failed, func(r content.Release) bool {
		p, ok := before.Of(r.Object.Kind, r.Object.Name)
		return ok && r.Object.Namespace == w.Namespace && p.Digest != pin.ShortDigest(r.Digest)
	})
}

func (w *Workload) backFor(why string) *back {
	return &back{why: why, pins: w.Records.Answered.Before.Parsed()}
}

// backUnit is a workload that is to get its previous config as the engine sees it: one that
// has failed at a revision which is not its target.
func (w *Workload) backUnit(unit rollout.Unit) rollout.Unit {
	unit.Leaf = rollout.Leaf{Current: w.Accepted(), Target: w.Records.Answered.Before.Hash, Health: rollout.Healthy, Priority: w.Settings.Priority}
	if w.failure != nil {
		unit.Leaf.Health, unit.Leaf.Reason = rollout.Failed, w.failure.Cause
	}
	if w.Retry != nil {
		unit.Leaf.RetryAt, unit.Leaf.RetryReason = w.Retry.At, w.Retry.Reason
	}
	return unit
}

// giveBack is the write that gives a workload its previous config.
func giveBack(w *Workload, now time.Time) Write {
	at := now.UTC().Truncate(time.Millisecond)
	write, e := Write{Workload: w, Rolls: true, Pins: w.back.pins}, workload.EditStored(&w.Workload)
	e.GoBack(at)
	e.Record(workload.Roll{At: at, Changed: w.Records.Roll.Changed, Template: workload.TemplateDigest(w.Object), Over: w.over(), Hash: w.rolledTo(w.Records.Answered.Before.Hash), Back: w.back.why})
	e.DropBaseline()
	text := rolledBackText(w.back.why, w.Records.Roll.Changed)
	e.SetCondition(w.stamped(stalledFor(ReasonConfigRolledBack, text), now))
	write.Events = []Event{{corev1.EventTypeWarning, ReasonConfigRolledBack, message.Sentence(text)}}
	write.Patches = []workload.Patch{e.Patch()}
	return write
}

// isRolledBack is true while a workload has its previous config because the present one has
// failed.
func (w *Workload) isRolledBack() bool {
	return w.Records.Roll.Back != "" && w.Records.Answered.By == "" && w.isUndone()
}

// saysRolledBack is true as long as the condition stays: also while the config was not read
// again yet.
func (w *Workload) saysRolledBack() bool {
	unread := w.Hashes == nil && !w.Unchanged && w.Settings.Tracked && w.Pinning.On
	return w.isRolledBack() || unread && w.Records.Roll.Back != "" && w.Records.Answered.By == ""
}

// rolledBackText says why a workload has its previous config, and which keys had changed.
func rolledBackText(why string, changed []string) string {
	text := message.Cut(why, message.ValueLength) + "; the previous config was restored"
	if len(changed) > 0 {
		text += " (changed: " + strings.Join(changed, ", ") + ")"
	}
	return text
}
