package agent

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// The types of the conditions.
const (
	ConditionReady       = "Ready"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
)

// settled is how long the message of a sync that is updating is kept.
const settled = 10 * time.Second

// report says what became of each sync, and of all of them.
func (d *decision) report() {
	a := &d.o.Assemblage
	reports := make([]Report, 0, len(a.Syncs))
	for i, v := range d.verdicts {
		r := Report{Assignment: &a.Syncs[i].Assignment, State: v.state, Reason: v.reason, Message: v.message, Resolved: v.resolved, Policy: v.policy}
		if until := r.KeepMessage(&a.Status, d.o.Now); !until.IsZero() {
			d.wake(until)
		}
		reports = append(reports, r)
	}
	d.plan.Status = StatusOf(&a.Status, reports, a.Generation, metav1.NewMicroTime(d.o.Now))
	if r := d.o.Refusals[""]; r != nil {
		d.plan.Status = Concluded(&d.plan.Status, a.Generation, metav1.NewMicroTime(d.o.Now), r.State, ReasonWriteRefused, r.Message)
	}
	d.plan.Changes = !equality.Semantic.DeepEqual(d.plan.Status, a.Status)
}

// reportEnd says what the end of the assemblage waits for.
func (d *decision) reportEnd(left string) {
	a := &d.o.Assemblage
	if d.plan.Status = a.Status; left == "" {
		return
	}
	message := fmt.Sprintf("waiting for Flux to remove what Kustomization %s has applied", left)
	if a.isRemote() {
		message += fmt.Sprintf("; if the cluster is lost, annotate this with %s=true to leave everything there", vocabulary.AbandonCluster.Native)
	}
	state, reason := v1alpha1.StateUpdating, ReasonDeleting
	if r := d.o.Refusals[""]; r != nil {
		state, reason, message = r.State, ReasonWriteRefused, r.Message
	}
	d.plan.Status = Concluded(&a.Status, a.Generation, metav1.NewMicroTime(d.o.Now), state, reason, message)
	d.plan.Changes = !equality.Semantic.DeepEqual(d.plan.Status, a.Status)
}

// Report is what became of an assignment.
type Report struct {
	*v1alpha1.Assignment

	State   v1alpha1.State
	Reason  rollout.Reason
	Message string
	// Resolved is what was applied, if it succeeded.
	Resolved string
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
	until = was.LastTransitionTime.Add(settled)
	if r.State != v1alpha1.StateUpdating || !now.Before(until) {
		return time.Time{}
	}
	r.Message = was.Message
	return until
}

// Find is what a status says of an assignment, nil if it says nothing.
func Find(status *v1alpha1.AssemblageStatus, a *v1alpha1.Assignment) *v1alpha1.SyncStatus {
	for i := range status.Syncs {
		if said := &status.Syncs[i]; said.Name == a.Name && said.Revision == a.Revision && said.AssignedAt.Equal(a.AssignedAt) {
			return said
		}
	}
	return nil
}

// StatusOf is the status of an assemblage with these reports, in which what has not
// changed stays as it was: when each sync came into its state, and at which revision
// it succeeded last.
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
		Name: r.Name, Revision: r.Revision, AssignedAt: r.AssignedAt, State: r.State, Reason: string(r.Reason), Message: r.Message,
		ObservedGeneration: generation, LastTransitionTime: &now, DeletionPolicy: r.Policy,
	}
	if was != nil {
		s.LastSucceededRevision, s.Resolved = was.LastSucceededRevision, was.Resolved
		if was.State == r.State && was.Revision == r.Revision && was.AssignedAt.Equal(r.AssignedAt) && was.LastTransitionTime != nil {
			s.LastTransitionTime = was.LastTransitionTime
		}
	}
	if r.State == v1alpha1.StateSucceeded {
		s.LastSucceededRevision, s.Resolved = r.Revision, r.Resolved
	}
	return s
}

// Concluded is a status that says of the whole assemblage what stands in its way.
func Concluded(was *v1alpha1.AssemblageStatus, generation int64, now metav1.MicroTime, state v1alpha1.State, reason rollout.Reason, message string) v1alpha1.AssemblageStatus {
	s := *was.DeepCopy()
	conclude(&s, generation, now, worst{state, reason, message})
	return s
}

// worst is the sync that tells most about an assemblage that is not ready.
type worst struct {
	state   v1alpha1.State
	reason  rollout.Reason
	message string
}

// gravity says which state tells most.
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
	stalled := w.state == v1alpha1.StateFailed
	ready := w.state == v1alpha1.StateSucceeded
	for _, c := range []metav1.Condition{
		{Type: ConditionReady, Status: kube.Truth(ready)},
		{Type: ConditionReconciling, Status: kube.Truth(!ready && !stalled)},
		{Type: ConditionStalled, Status: kube.Truth(stalled)},
	} {
		c.Reason, c.Message = string(w.reason), w.message
		c.ObservedGeneration, c.LastTransitionTime = generation, metav1.NewTime(now.Time)
		meta.SetStatusCondition(&s.Conditions, c)
	}
}
