package policy

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// mostReleases bounds how many releases a status has, and mostPast how many that are over.
const (
	mostReleases = 16
	mostPast     = 16
)

// Write is a status that is not what it should be.
type Write struct {
	Policy *Policy
	status v1alpha1.ConfigPolicyStatus
}

// Status is what the status should be.
func (w *Write) Status() v1alpha1.ConfigPolicyStatus { return w.status }

// Change identifies the write.
func (w *Write) Change() ring.Change { return ring.Change{Act: "Policy", Object: w.Policy.String()} }

// Writes are the statuses that are not what they should be.
func (s Set) Writes(now time.Time, reports map[*Policy]*Report) []Write {
	var writes []Write
	for _, p := range s {
		before := p.status()
		status := *before.DeepCopy()
		report := reports[p]
		if report == nil {
			report = &Report{}
		}
		p.describe(&status, report, now)
		if !equality.Semantic.DeepEqual(*before, status) {
			writes = append(writes, Write{p, status})
		}
	}
	return writes
}

func (p *Policy) status() *v1alpha1.ConfigPolicyStatus {
	switch o := p.object.(type) {
	case *v1alpha1.ConfigPolicy:
		return &o.Status
	case *v1alpha1.ClusterConfigPolicy:
		return &o.Status
	default:
		return &v1alpha1.ConfigPolicyStatus{}
	}
}

// Make writes a status, if no client has written the policy since it was read.
func (w *Write) Make(ctx context.Context, c client.SubResourceWriter) error {
	var err error
	switch o := w.Policy.object.(type) {
	case *v1alpha1.ConfigPolicy:
		_, err = ring.UpdateStatus(ctx, c, o, func(o *v1alpha1.ConfigPolicy) { o.Status = w.status }, ring.ReadBack)
	case *v1alpha1.ClusterConfigPolicy:
		_, err = ring.UpdateStatus(ctx, c, o, func(o *v1alpha1.ClusterConfigPolicy) { o.Status = w.status }, ring.ReadBack)
	}
	if err != nil {
		return fmt.Errorf("write the status of %s: %w", w.Policy, err)
	}
	return nil
}

// ConditionComplete is true while no release is under way.
const ConditionComplete = "Complete"

// describe sets the status. Ready is the policy itself: a release of some user that waits or
// has failed keeps no one from installing it.
func (p *Policy) describe(s *v1alpha1.ConfigPolicyStatus, report *Report, now time.Time) {
	generation, releases := p.object.GetGeneration(), report.Releases
	s.ObservedGeneration = generation
	main := MostTelling(releases)
	s.Phase, s.WaitingFor = string(main.Phase), message.Sentence(main.Waits)
	known := s.Releases
	s.History = past(s.History, known, releases, now)
	s.Underway, s.Releases = int32(min(len(releases), 1<<30)), nil
	for i := range releases[:min(len(releases), mostReleases)] {
		s.Releases = append(s.Releases, releases[i].row(known, now))
	}
	valid := p.validity(report)
	valid.Set(&s.Conditions, generation, now)
	complete := metav1.Condition{
		Type: ConditionComplete, Status: metav1.ConditionTrue, Reason: string(main.Reason), Message: "no release is under way",
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
	}
	if len(releases) > 0 {
		complete.Status, complete.Message = metav1.ConditionFalse, s.WaitingFor
	}
	apimeta.SetStatusCondition(&s.Conditions, complete)
}

// past adds to a history the releases that were under way and are not any more. They are recorded
// by the write that removes them, so that no end is lost.
func past(history []v1alpha1.PastConfigRelease, known []v1alpha1.ConfigRelease, releases []Release, now time.Time) []v1alpha1.PastConfigRelease {
	var over []v1alpha1.PastConfigRelease
	for i := range known {
		k := &known[i]
		outcome, isOver := becameOf(k, releases)
		if isOver && k.StartedAt != nil { // an earlier version has not recorded its beginning
			over = append(over, pastRow(k, outcome, now))
		}
	}
	all := slices.Concat(over, history)
	return all[:min(len(all), mostPast):min(len(all), mostPast)]
}

// becameOf is how a release ended; it is not over while it is among those that are under way.
func becameOf(k *v1alpha1.ConfigRelease, underway []Release) (outcome rollout.Outcome, isOver bool) {
	object, _ := content.CutRelease(k.Object)
	outcome = rollout.OutcomeComplete
	for i := range underway {
		r := &underway[i]
		name := r.From(r.Namespace)
		other, _ := content.CutRelease(name)
		switch {
		case r.Namespace != k.Namespace || other != object:
		case name == k.Object:
			return "", false
		default:
			outcome = rollout.OutcomeSuperseded
		}
	}
	if k.RolledBack > 0 {
		outcome = rollout.OutcomeRolledBack
	}
	return outcome, true
}

// pastRow is the row of a release that is over now. If it is complete, so are its stages.
func pastRow(k *v1alpha1.ConfigRelease, outcome rollout.Outcome, now time.Time) v1alpha1.PastConfigRelease {
	at := metav1.NewMicroTime(now.Truncate(time.Microsecond))
	row := v1alpha1.PastConfigRelease{Object: k.Object, Namespace: k.Namespace, Outcome: string(outcome), StartedAt: *k.StartedAt, FinishedAt: at}
	for i := range k.Stages {
		s := &k.Stages[i]
		if s.StartedAt == nil {
			continue
		}
		stage := v1alpha1.PastConfigStage{Name: s.Name, StartedAt: *s.StartedAt, FinishedAt: s.FinishedAt}
		if stage.FinishedAt == nil && outcome == rollout.OutcomeComplete {
			stage.FinishedAt = &at
		}
		row.Stages = append(row.Stages, stage)
	}
	return row
}

// validity says whether the policy itself has the effect that it is to have.
func (p *Policy) validity(report *Report) ring.Conditions {
	switch {
	case p.Problem != "":
		return ring.Conditions{Stalled: true, Reason: ReasonInvalid, Message: p.String() + ": " + p.Problem}
	case report.Unpinned.Workloads > 0:
		return ring.Conditions{Stalled: true, Reason: ReasonPinsMissing, Message: message.Sentence(report.Unpinned.text())}
	default:
		return ring.Conditions{Ready: true, Reason: ReasonInForce, Message: p.String() + " is in force"}
	}
}

// MostTelling is the first release with the phase that says most: what needs a user comes
// first. Without any, all is complete.
func MostTelling(releases []Release) Release {
	for _, phase := range []rollout.Phase{rollout.PhaseFailed, rollout.PhasePaused, rollout.PhaseProgressing} {
		for i := range releases {
			if releases[i].Phase == phase {
				return releases[i]
			}
		}
	}
	if len(releases) > 0 {
		return releases[0]
	}
	return Release{Progress: Progress{Phase: rollout.PhaseComplete}, Reason: reasons.Complete}
}

// row is the row of a release, with the times that the rows before have of it.
func (r *Release) row(known []v1alpha1.ConfigRelease, now time.Time) v1alpha1.ConfigRelease {
	at := metav1.NewMicroTime(now.Truncate(time.Microsecond))
	row := v1alpha1.ConfigRelease{
		Object: r.From(r.Namespace), Namespace: r.Namespace, Phase: string(r.Phase), Updated: r.share(), WaitingFor: message.Sentence(r.Waits),
		RolledBack: int32(min(r.RolledBack, 1<<30)), //nolint:gosec // bounded
		Cause:      r.cause(),
		StartedAt:  &at,
	}
	before := v1alpha1.ConfigRelease{}
	if i := slices.IndexFunc(known, func(k v1alpha1.ConfigRelease) bool { return k.Object == row.Object && k.Namespace == row.Namespace }); i >= 0 {
		before = known[i]
		row.StartedAt = before.StartedAt // nil if an earlier version has not recorded it
	}
	isOpen := true
	for i := range r.Stages {
		row.Stages = append(row.Stages, r.Stages[i].row(before.Stages, isOpen, &at))
		isOpen = isOpen && r.Stages[i].Phase == rollout.PhaseComplete
	}
	return row
}

// cause is why it is not complete. Since when is not part of it: a decision may say another time each time.
func (r *Release) cause() *v1alpha1.RolloutCause {
	w := ring.Waiting{Cause: r.Cause, State: string(r.Phase), Reason: r.Reason, Until: r.Until}
	c := w.Record(r.Namespace)
	c.Count, c.Units = int32(min(r.Of-r.Updated, 1<<30)), []string{} //nolint:gosec // bounded
	return &c
}

// row is the row of a stage. It is open if all before it are complete.
func (s *StageProgress) row(known []v1alpha1.ConfigStageStatus, isOpen bool, at *metav1.MicroTime) v1alpha1.ConfigStageStatus {
	row := v1alpha1.ConfigStageStatus{Name: s.Name, Phase: string(s.Phase), Updated: s.share()}
	if i := slices.IndexFunc(known, func(k v1alpha1.ConfigStageStatus) bool { return k.Name == s.Name }); i >= 0 {
		row.StartedAt, row.FinishedAt = known[i].StartedAt, known[i].FinishedAt
	}
	isOn := isOpen && s.Of > 0 && s.Phase != rollout.PhaseWaiting && s.Phase != rollout.PhasePaused
	if row.StartedAt == nil && isOn {
		row.StartedAt = at
	}
	if row.FinishedAt == nil && isOn && s.Phase == rollout.PhaseComplete {
		row.FinishedAt = at
	}
	return row
}

// share is how many of all have come where they should be.
func (p *Progress) share() string { return fmt.Sprintf("%d/%d", p.Updated, p.Of) }
