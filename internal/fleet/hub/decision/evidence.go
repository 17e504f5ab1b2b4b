package decision

import (
	"slices"

	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/rollout"
)

// Of a revision, a cluster is evidence if it was ready before it was assigned it, and answers.
// One that is suspended or does not answer is not assigned anything: nothing would come of it
// but a deadline that passes. One that was not ready with what reached all clusters goes after
// the others, and counts for the revision if it becomes ready, but not against it if it does not.

// addEvidence says why a cluster is no evidence of the target, if it is none. Going back to what
// all clusters ran needs no evidence: each cluster that has what failed is assigned the other, answering or not.
func (d *decision) addEvidence(m *member) {
	outdated := m.leaf.Current != d.target
	if m.isSilent() { // it is looked what it has first, and it may have a lot
		m.leaf.NoEvidence, m.leaf.Cause = "not reachable", outcome.ReasonUnreachable
		m.skipIf(outdated, outcome.ReasonUnreachable, "skipped until it answers: it is not known what it runs")
		return
	}
	if outdated && d.goesBack(m.leaf.Current) {
		return
	}
	if m.untouched = d.isUntouched(m); m.untouched {
		m.leaf.NoEvidence, m.leaf.Repairing = "not changed by "+d.target, d.wasDown(m)
		return
	}
	m.leaf.Disrupted = outdated && d.isDisrupted(m)
	if outdated && !d.o.Module.IsStaged() { // all are assigned it at the same time, and these do not count against it
		m.unready = m.isSuspended() || m.isUnreachable() || !m.Ready || d.isSick(m)
		return
	}
	switch {
	case m.isSuspended():
		m.leaf.NoEvidence, m.leaf.Cause = "suspended", outcome.ReasonSuspended
		m.skipIf(outdated, outcome.ReasonSuspended, "skipped until it is resumed: "+m.record.Message)
	case m.isUnreachable():
		m.leaf.NoEvidence = "not reachable"
		m.skipIf(outdated, outcome.ReasonUnreachable, "skipped until it answers: "+m.leaf.Reason)
	case !outdated && m.isDependent():
		m.leaf.NoEvidence, m.leaf.Cause = "waiting for what it depends on", outcome.ReasonDependency
	case !m.Ready:
		m.leaf.NoEvidence = "not ready: its control plane is not up"
		m.skipIf(outdated, outcome.ReasonUnreachable, "skipped until its control plane is up")
	case outdated && d.isSick(m), !outdated && d.wasUnready(m):
		m.leaf.NoEvidence = "not ready since before it was assigned " + d.target
	}
	// What was unready before was not made so, nor what was ready with the revision that reached all. With
	// one that is new, what was ready for a while may be so no more because of it.
	m.leaf.Repairing = !outdated && m.move == nil && m.isAssigned() && (m.record.Unready || m.record.Proven && !d.isNews())
}

// goesBack is true of a cluster at a revision that has failed, or is newer than the target: it is to leave it.
func (d *decision) goesBack(from string) bool {
	has, target := d.o.Revision(from), d.o.Revision(d.target)
	isNewer := has != nil && target != nil && has.Number > target.Number
	return d.target != d.wanted && from == d.wanted || !d.isNews() && isNewer
}

// skipIf skips a cluster that would be moved.
func (m *member) skipIf(outdated bool, reason rollout.Reason, message string) {
	if outdated {
		m.skip = &rollout.Block{Reason: reason, Message: message}
	}
}

// isSuspended is true of a cluster in which a user has suspended what would apply the module.
func (m *member) isSuspended() bool {
	return m.isAssigned() && m.move == nil && m.record.Reported && m.record.Reason == outcome.ReasonSuspended
}

// isDependent is true of a cluster in which something that the module depends on is not ready: what the module is
// assigned was not tried there.
func (m *member) isDependent() bool {
	return m.isAssigned() && m.move == nil && m.record.Reported && m.record.Reason == outcome.ReasonDependency
}

// isSick is true of a cluster that is not ready with what reached all, and was not made so by being
// assigned that: it was not ready before, or its time is over. What was failing with another revision
// is to be repaired by the target, and says whether it is.
func (d *decision) isSick(m *member) bool { return m.revision() == d.good && d.wasDown(m) }

// isDisrupted is true of a cluster that may not be ready because of what it was assigned last.
func (d *decision) isDisrupted(m *member) bool {
	return m.isAssigned() && !m.record.Unready && !m.record.Proven && (d.isInTime(m) || !d.isProven(m.revision()))
}

// wasDown is true of a cluster that is not ready, and was not made so by what it is assigned.
func (d *decision) wasDown(m *member) bool {
	switch {
	case !m.isAssigned() || m.move != nil || m.removing || d.isDisrupted(m):
		return false
	case m.leaf.Health == rollout.Failed || m.leaf.Health == rollout.Degraded:
		return true
	default: // what was ready and is applied again is not
		return m.leaf.Health != rollout.Healthy && !m.record.Proven
	}
}

// isInTime is true of a cluster that may not be ready because of what it was assigned.
func (d *decision) isInTime(m *member) bool { return d.o.Now.Before(m.started.Add(d.deadline())) }

// isProven is true of what reached all clusters, and of what did before.
func (d *decision) isProven(revision string) bool {
	good, has := d.o.Revision(d.good), d.o.Revision(revision)
	return good != nil && has != nil && has.Number <= good.Number
}

// wasUnready is true of a cluster that was not ready before it was assigned the target, and has not
// become ready with it.
func (d *decision) wasUnready(m *member) bool {
	if m.move != nil {
		return m.move.Unready
	}
	return m.isAssigned() && m.record.Unready && !m.record.Proven
}

// minEvidence is how many clusters of a stage must show that a revision is good: none where
// failures stop nothing either, and where there is nothing that comes after a stage without clusters.
func (d *decision) minEvidence(i int) int {
	s, untouched := &d.stages[i], 0
	for _, m := range s.members {
		untouched += one(m.untouched)
	}
	switch {
	case !slices.ContainsFunc(d.stages[i:], func(s stage) bool { return len(s.members) > 0 }):
		return 0
	case s.spec.AllowEmpty || !d.o.Module.IsStaged() || d.onFailure() == rollout.Continue:
		return 0
	case untouched > 0: // those show nothing, and nothing of it could break them
		return min(s.minEvidence(), len(s.members)-untouched)
	default:
		return s.minEvidence()
	}
}

func (s *stage) minEvidence() int {
	if s.spec.MinEvidence != nil {
		return int(*s.spec.MinEvidence)
	}
	return 1
}
