package decision

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// Write is one intended change of a workload.
type Write struct {
	Workload *Workload
	// Rolls is true if it changes the Pod template.
	Rolls bool
	// Disowns is true if it removes what old versions of wave left.
	Disowns bool
	// Patches are made one after the other; the first that fails ends the write.
	Patches []workload.Patch
	// Pins are those that the write sets. Their snapshots have to exist before it.
	Pins pin.Pins
	// Deletes are Pods to delete, so that they are recreated: suspended ones, or with
	// Replaces one that was never ready at an earlier revision.
	Deletes  []workload.WaitingPod
	Replaces bool
	// Events are emitted once all patches are made.
	Events []Event
}

// Change identifies the write.
func (w *Write) Change() ring.Change {
	c := ring.Change{Act: "Record", Object: w.Workload.String()}
	switch {
	case w.Disowns:
		c.Object = Disowning(&w.Workload.Workload)
	case w.Rolls:
		c.Act = "Roll"
	case w.Replaces:
		return Replacing(w.Workload.Name, w.Deletes[0].UID)
	case len(w.Deletes) > 0:
		c.Act = "Free"
	}
	return c
}

// Disowning is what the removal of what wave left on a workload is called. It is refused and
// retried for itself, so that the workload is rolled meanwhile.
func Disowning(w *workload.Workload) string { return "finalizer of " + w.String() }

// Event is an Event about the workload.
type Event struct {
	Type   string
	Reason rollout.Reason
	Note   string
}

// step is the write that brings a workload up to date.
func step(w *Workload, now time.Time) Write {
	if w.back != nil {
		return giveBack(w, now)
	}
	if w.stuck != nil {
		return replace(w)
	}
	if w.IsTemplateSettled() {
		return Write{Workload: w, Deletes: w.Suspension.Deletable()}
	}
	return roll(w, now)
}

// roll is the one write for a change: the hash, the release if the workload is
// suspended, and the record of what changed.
func roll(w *Workload, now time.Time) Write {
	write := Write{Workload: w, Rolls: true}
	e := workload.EditStored(&w.Workload)
	if w.Suspension.IsSuspended() {
		e.Release()
		write.Events = append(write.Events, Event{corev1.EventTypeNormal, EventReleased, "Scheduling enabled: the config of the Pods exists"})
	}
	if w.Settings.Tracked {
		at := now.UTC().Truncate(time.Millisecond)
		e.SetHash(at)
		e.SetPins(at, w.before())
		if w.Pinning.On {
			write.Pins = w.PinsNow()
		}
		record := workload.Roll{
			At: at, Changed: w.Change.Shortened(), Template: workload.TemplateDigest(w.Object),
			Unready: w.isUnreadyBefore(now), Over: w.over(), Hash: w.rolledTo(w.Hashes.Desired),
		}
		record.Was = w.Accepted()
		switch was := &w.Records.Roll; {
		case w.recalled: // it lost its hash, and its Pods may do what the content has them do
			record.Unready, record.Was, record.Available, record.Failing = was.Unready, was.Was, was.Available, was.Failing
		case record.Unready:
			record.Available, record.Failing = w.baseline(now)
		}
		e.Record(record)
		write.Events = append(write.Events, Event{corev1.EventTypeNormal, EventChanged, ChangedNote + w.Hashes.Desired})
	}
	e.DropBaseline()
	c := w.condition(now)
	e.SetCondition(c)
	if !c.Equal(w.Records.Condition) {
		write.Events = append(write.Events, conditionEvents(w, c)...)
	}
	write.Patches = []workload.Patch{e.Patch()}
	return write
}

// ChangedNote begins the Event of a roll. It is wave's, to the letter: the hash follows.
const ChangedNote = "Configuration hash updated to "

// record is the write that keeps the annotations of a workload up to date without
// changing its Pod template; none if they are.
func record(w *Workload, now time.Time) []Write {
	if w.Legacy.Finalizer && !w.Legacy.Unknown && !w.Disown.Pending(now) {
		return []Write{{Workload: w, Disowns: true, Patches: workload.Disown(&w.Workload)}}
	}
	c, moved := w.condition(now), w.MarksFailed() && w.isMoved(now)
	unchanged, adopts := c.Equal(w.Records.Condition), w.IsCurrent() && w.Adopts() && !w.recordsAdoption
	lacks, marks := w.IsCurrent() && w.LacksInputs(), w.MarksAdopted()
	answered, answers := w.answersNow(now)
	recalled := w.recalled && w.IsCurrent()
	if unchanged && !moved && !adopts && !lacks && !marks && !answers && !recalled && !w.IsMarkedInVain() {
		return nil
	}
	write, e := Write{Workload: w}, workload.EditStored(&w.Workload)
	e.SetCondition(c)
	if moved {
		e.DropFailed()
	}
	if w.IsMarkedInVain() {
		e.DropMarks()
	}
	if !unchanged {
		write.Events = w.eventsOf(c, now)
	}
	if recalled {
		e.Record(w.Records.Roll)
	}
	switch {
	case adopts:
		e.SetBaseline(now)
	case lacks:
		e.SetInputs(now)
	}
	if marks {
		e.DropBaseline()
	}
	if answers {
		e.SetAnswered(answered)
	}
	write.Patches = []workload.Patch{e.Patch()}
	return []Write{write}
}

// answersNow is what a workload that has what it is to have says to that, and whether it is to be recorded.
func (w *Workload) answersNow(now time.Time) (answered workload.Answered, is bool) {
	answered, is = w.AnswersNow(now.UTC().Truncate(time.Millisecond))
	return answered, is && w.Settings.Tracked && w.IsCurrent()
}

// eventsOf are those of a condition that is new.
func (w *Workload) eventsOf(c *workload.Condition, now time.Time) []Event {
	if w.failure != nil && !w.isRecorded(now) {
		return []Event{{corev1.EventTypeWarning, ReasonConfigFailed, w.failedNote()}}
	}
	return conditionEvents(w, c)
}

func conditionEvents(w *Workload, c *workload.Condition) []Event {
	if c == nil {
		return nil
	}
	events := []Event{{corev1.EventTypeWarning, c.Reason, c.Message}}
	if w.Suspension.IsSuspended() && len(w.Missing) > 0 {
		events = append(events, Event{corev1.EventTypeNormal, EventSuspended, "Scheduling disabled until the config of the Pods exists: " + w.MissingText()})
	}
	return events
}

// condition is what a user must fix, reported on the workload itself. Nil if there
// is nothing.
func (w *Workload) condition(now time.Time) *workload.Condition {
	var c *workload.Condition
	switch {
	case len(w.Denied) > 0:
		c = notReady(ReasonNotPermitted, w.DeniedText())
	case len(w.Missing) > 0:
		c = notReady(ReasonConfigMissing, w.missingText())
	case w.failure != nil:
		c = notReady(ReasonConfigFailed, w.failure.reason(w.Namespace))
	case w.stop != nil && w.stop.Reason == ReasonConfigFailed:
		c = notReady(ReasonConfigFailed, w.stop.said+"; "+w.KeepingOf(w.stop.Release).Clause())
	case w.staged != nil && w.staged.Reason == ReasonConfigFailed:
		c = notReady(ReasonConfigFailed, w.staged.Message+"; "+w.KeepingOf(w.staged.Release).Clause())
	case w.brake != nil:
		c = stalledFor(ReasonConfigKeepsChanging, w.brake.text())
	case w.saysRolledBack():
		c = stalledFor(ReasonConfigRolledBack, rolledBackText(w.Records.Roll.Back, w.Records.Roll.Changed))
	case w.Settings.Tracked && len(w.Pinning.Lost) > 0:
		c = notReady(ReasonSnapshotMissing, w.lostText())
	case w.Settings.Tracked && w.Pinning.Refused != "" && w.Pinning.By == "": // else the policy says so
		c = stalledFor(ReasonPinsUnavailable, w.Pinning.Refused)
	case len(w.LeftOut) > 0:
		c = stalledFor(ReasonNotPermitted, w.LeftOutText())
	case len(w.Settings.Problems) > 0:
		c = stalledFor(ReasonInvalidAnnotation, w.problems())
	default:
		return nil
	}
	return w.stamped(c, now)
}

func notReady(reason rollout.Reason, message string) *workload.Condition {
	return &workload.Condition{Type: "Ready", Status: "False", Reason: reason, Message: message}
}

func stalledFor(reason rollout.Reason, message string) *workload.Condition {
	return &workload.Condition{Type: ring.ConditionStalled, Status: "True", Reason: reason, Message: message}
}

// stamped is a condition as a sentence, with the time since when it is so.
func (w *Workload) stamped(c *workload.Condition, now time.Time) *workload.Condition {
	c.Message = message.Sentence(c.Message)
	c.Since = now.UTC().Truncate(time.Second)
	if old := w.Records.Condition; old != nil && old.Reason == c.Reason {
		c.Since = old.Since
	}
	return c
}

func (w *Workload) problems() string {
	return message.Join(w.Settings.Problems, "; ", workload.Problem.String)
}

// missingText says what does not exist, and what that means for Pods that have not
// started.
func (w *Workload) missingText() string {
	if w.Suspension.IsSuspended() {
		return w.MissingText() + "; its Pods are not scheduled"
	}
	return w.MissingText()
}
