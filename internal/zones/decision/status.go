package decision

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// PhaseStalled is the phase of a group that cannot be understood.
const PhaseStalled rollout.Phase = "Stalled"

// The states of a zone that are no reasons to wait.
const (
	StateComplete = "Complete"
	StateUpdating = "Updating"
)

// status is what the status of the group must be after this decision.
func (d *decision) status() v1alpha1.RolloutGroupStatus {
	s := *d.o.Group.Status.DeepCopy()
	s.ObservedGeneration = d.o.Group.Generation
	s.Moves = d.intents.Kept()
	if d.mayRelease() {
		s.Lock = nil
	}
	s.Zones = d.rows()
	if d.hasLearned(&s) {
		s.Seen = d.o.seen()
	}
	s.History = d.history()
	s.Phase = string(d.phase())
	if d.phase() == rollout.PhaseComplete {
		s.Forecast = nil
	}
	s.Zone, s.Updated = d.place(), progress(s.Zones)
	s.WaitingFor, s.Since = d.waitingFor()
	reason, message := d.verdict()
	ring.ConditionsOf(d.phase(), len(d.problems) > 0, reason, message).Set(&s.Conditions, d.o.Group.Generation, d.o.Now)
	s.Rollout = d.record(s.Zones, s.History)
	return s
}

// hasLearned is true if something is not expected any more that was: all
// that decide from now on must know it.
func (d *decision) hasLearned(s *v1alpha1.RolloutGroupStatus) bool {
	old := &d.o.Group.Status
	opened := func(z v1alpha1.Zone) bool { return z.Opened }
	return len(s.Moves) < len(old.Moves) || s.Lock == nil && old.Lock != nil ||
		slices.ContainsFunc(old.Zones, opened) && !slices.ContainsFunc(s.Zones, opened)
}

// mayRelease is true if that is known for certain.
func (d *decision) mayRelease() bool {
	return d.isOver() && !slices.ContainsFunc(d.zones, (*zone).isOpened)
}

// place is which zone moves, or is the first that is not done, of how many.
func (d *decision) place() string {
	n := len(d.zones)
	for i, z := range d.zones {
		if l := d.tree.Root.Lock; l.Holder == d.tree.Self && l.Unit == z.Name && !d.isDone(z) {
			return share(i+1, n)
		}
	}
	for i, z := range d.zones {
		if d.plan.At(z.Name) != (rollout.Answer{}) {
			return share(i+1, n)
		}
	}
	return share(n, n)
}

// progress is how many Pods are where they should be, of how many.
func progress(rows []v1alpha1.Zone) string {
	updated, total := 0, 0
	for i := range rows {
		updated, total = updated+int(rows[i].Updated), total+int(rows[i].Total)
	}
	return share(updated, total)
}

// rows has one for each zone.
func (d *decision) rows() []v1alpha1.Zone {
	var rows []v1alpha1.Zone
	for _, z := range d.zones {
		rows = append(rows, d.row(z))
	}
	return rows
}

func (d *decision) row(z *zone) v1alpha1.Zone {
	row := z.row
	counts := d.plan.Group(z.Name).Counts
	row.Name, row.Total, row.Opened = z.Name, small(z.Replicas), z.isOpened() || d.isForced(z)
	row.Updated, row.Ready = small(counts.Ready), small(counts.Available)
	if !z.stale() {
		row.Target, row.StartedAt = z.UpdateRevision, z.started()
	}
	answer := d.plan.At(z.Name)
	row.State, row.Message, row.Since = StateComplete, message.Sentence(answer.Message()), nil
	switch {
	case answer.Step != nil:
		row.State = StateUpdating
	case answer.Hold != nil:
		row.State, row.Since = string(answer.Hold.Reason), at(answer.Hold.Since)
	case !z.stale():
		row.Revision = z.UpdateRevision
	}
	return row
}

// small is a number of Pods; there are never as many as an int32 can count.
func small(n int) int32 { return int32(min(n, Held)) } //nolint:gosec // bounded

func share(part, whole int) string { return strconv.Itoa(part) + "/" + strconv.Itoa(whole) }

// waitingFor is the sentence that tells most, and since when it is so.
func (d *decision) waitingFor() (string, *metav1.Time) {
	if len(d.problems) > 0 {
		return message.Sentence(sentences(d.problems)), nil
	}
	answer := d.plan.At()
	if answer.Hold == nil {
		return "", nil
	}
	return message.Sentence(answer.Hold.Message), at(answer.Hold.Since)
}

func at(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	whole := metav1.NewTime(t.Truncate(time.Second))
	return &whole
}

// verdict is the state of the group as a word and a sentence.
func (d *decision) verdict() (reason rollout.Reason, message string) {
	answer := d.plan.At()
	switch {
	case len(d.problems) > 0:
		return ReasonInvalid, sentences(d.problems)
	case answer.Hold != nil:
		return answer.Hold.Reason, answer.Hold.Message
	case answer.Step != nil:
		return rollout.ReasonProgressing, answer.Message()
	default:
		return reasons.Complete, fmt.Sprintf("all of %d zones are up to date", len(d.zones))
	}
}
