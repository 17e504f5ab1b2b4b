package outcome

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// KeptFor is how long the message of a sync that is updating is kept.
const KeptFor = 10 * time.Second

// Report says what became of an assignment.
type Report struct {
	*v1alpha1.Assignment

	State   v1alpha1.State
	Reason  rollout.Reason
	Message string
	// Resolved is what was applied, if it succeeded.
	Resolved string
	// FailedAt is when it failed for the first time, if it is tried again.
	FailedAt *metav1.Time
	// Policy is Orphan if what runs stays when the sync is removed now.
	Policy v1alpha1.DeletionPolicy
}

// KeepMessage keeps the message of the status for a while where only the message has
// changed, so that a sync that is updating does not cost a write at each step. It returns
// when the message will change, zero if it need not wait.
func (r *Report) KeepMessage(status *v1alpha1.AssemblageStatus, now time.Time) (until time.Time) {
	was := Find(status, r.Assignment)
	if was == nil || was.State != r.State || was.Reason != string(r.Reason) || was.Message == r.Message || was.LastTransitionTime == nil {
		return time.Time{}
	}
	until = was.LastTransitionTime.Add(KeptFor)
	if r.State != v1alpha1.StateUpdating || !now.Before(until) {
		return time.Time{}
	}
	r.Message = was.Message
	return until
}

// AskEvery is how often a cluster is asked at least whether it answers, while a sync has been
// updating there for less than [AskShare] times that. A watch does not tell silence from
// nothing to say, and a deadline runs.
const AskEvery = 5 * time.Second

// AskShare is the part of the time that a sync has been updating after which its cluster is
// asked again, so that what takes long costs few requests.
const AskShare = 12

// NextAsk returns when to ask a cluster again whether it answers, zero while no sync is
// updating there.
func NextAsk(status *v1alpha1.AssemblageStatus, now time.Time) (next time.Time) {
	for i := range status.Syncs {
		if s := &status.Syncs[i]; s.State == v1alpha1.StateUpdating && s.LastTransitionTime != nil {
			next = ring.Earlier(next, now.Add(max(AskEvery, now.Sub(s.LastTransitionTime.Time)/AskShare)))
		}
	}
	return next
}

// Find returns what a status says of an assignment, nil if it says nothing.
func Find(status *v1alpha1.AssemblageStatus, a *v1alpha1.Assignment) *v1alpha1.SyncStatus {
	for i := range status.Syncs {
		if said := &status.Syncs[i]; said.Name == a.Name && said.Revision == a.Revision && said.AssignedAt.Equal(a.AssignedAt) {
			return said
		}
	}
	return nil
}

// StatusOf returns the status of an assemblage with these reports. What has not changed
// stays as it was: the time of each state, and the revision that succeeded last.
func StatusOf(was *v1alpha1.AssemblageStatus, reports []Report, generation int64, now metav1.MicroTime) v1alpha1.AssemblageStatus {
	s := v1alpha1.AssemblageStatus{ObservedGeneration: generation, Conditions: was.DeepCopy().Conditions}
	former := map[string]*v1alpha1.SyncStatus{}
	for i := range was.Syncs {
		former[was.Syncs[i].Name] = &was.Syncs[i]
	}
	overall := worst{state: v1alpha1.StateSucceeded, reason: ReasonApplied, message: "all syncs have succeeded"}
	for _, r := range reports {
		s.Syncs = append(s.Syncs, statusOf(former[r.Name], r, generation, now))
		overall.add(r)
	}
	conclude(&s, generation, now, overall)
	return s
}

func statusOf(was *v1alpha1.SyncStatus, r Report, generation int64, now metav1.MicroTime) v1alpha1.SyncStatus {
	s := v1alpha1.SyncStatus{
		Name: r.Name, Revision: r.Revision, AssignedAt: r.AssignedAt, State: r.State, Reason: string(r.Reason), Message: message.Sentence(r.Message),
		ObservedGeneration: generation, LastTransitionTime: &now, FailedAt: r.FailedAt, DeletionPolicy: r.Policy,
	}
	if was != nil {
		s.LastSucceededRevision, s.LastSucceededAssignedAt, s.Resolved = was.LastSucceededRevision, was.LastSucceededAssignedAt, was.Resolved
		if was.State == r.State && was.Revision == r.Revision && was.AssignedAt.Equal(r.AssignedAt) && was.LastTransitionTime != nil {
			s.LastTransitionTime = was.LastTransitionTime
		}
	}
	if r.State == v1alpha1.StateSucceeded {
		s.LastSucceededRevision, s.LastSucceededAssignedAt, s.Resolved = r.Revision, r.AssignedAt, r.Resolved
	}
	return s
}

// Concluded returns the status with conditions that say what blocks the whole assemblage.
func Concluded(was *v1alpha1.AssemblageStatus, generation int64, now metav1.MicroTime, state v1alpha1.State, reason rollout.Reason, message string) v1alpha1.AssemblageStatus {
	s := *was.DeepCopy()
	conclude(&s, generation, now, worst{state, reason, message})
	return s
}

// worst is the sync whose state the conditions of the assemblage show.
type worst struct {
	state   v1alpha1.State
	reason  rollout.Reason
	message string
}

// gravity orders the states: the conditions show the gravest.
var gravity = map[v1alpha1.State]int{
	v1alpha1.StateSucceeded: 0, v1alpha1.StateUpdating: 1, v1alpha1.StateWaiting: 2, v1alpha1.StateUnreachable: 3, v1alpha1.StateFailed: 4,
}

func (w *worst) add(r Report) {
	if r.Reason != ReasonNotAssigned && gravity[r.State] > gravity[w.state] {
		*w = worst{r.State, r.Reason, fmt.Sprintf("sync %s: %s", r.Name, r.Message)}
	}
}

// conclude writes the conditions.
func conclude(s *v1alpha1.AssemblageStatus, generation int64, now metav1.MicroTime, w worst) {
	c := ring.Conditions{
		Ready: w.state == v1alpha1.StateSucceeded, Stalled: w.state == v1alpha1.StateFailed, Reason: w.reason, Message: w.message,
	}
	c.Reconciling = !c.Ready && !c.Stalled
	c.Set(&s.Conditions, generation, now.Time)
}
