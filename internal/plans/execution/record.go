package execution

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/ring"
)

// record notes in the status which steps are complete, which failed, and which objects
// are in the inventory.
func (r *run) record() {
	for i := range r.active {
		r.recordStep(&r.active[i])
	}
	for _, f := range r.findings() {
		r.recordObjects(f)
	}
	for i := range r.active {
		r.recordApplied(&r.active[i])
	}
	r.recordAbove()
}

func (r *run) recordStep(a *activeStep) {
	message, at := r.failure(a)
	switch {
	case a.isDone():
		*a.status = v1beta1.StepStatus{Name: a.status.Name, Status: v1beta1.Complete, Message: a.left(), StartedAt: a.status.StartedAt, FinishedAt: r.stamp()}
	case message != "":
		a.failed(message, at)
	case !a.hasWrites():
		*a.status = v1beta1.StepStatus{Name: a.status.Name, Status: v1beta1.InProgress, StartedAt: a.status.StartedAt}
	}
}

// failure is what went wrong in a step, and when; the time is zero of what is waited
// for and not tried again.
func (r *run) failure(a *activeStep) (message string, at time.Time) {
	for _, f := range a.findings {
		for _, w := range f.Writes {
			if refusal, ok := r.Snapshot.Refusals.Of(&w); ok && refusal.Immutable == "" {
				return w.Ref.String() + ": " + refusal.Reason, refusal.At.Truncate(time.Microsecond)
			}
		}
		if f.Failed != "" {
			return f.Failed, r.tried(a)
		}
	}
	for _, f := range a.findings {
		if f.Blocked != nil {
			return f.Blocked.Message, time.Time{}
		}
	}
	return "", time.Time{}
}

// tried is when a task last failed that fails in each assessment: now, once the next
// try is due.
func (r *run) tried(a *activeStep) time.Time {
	if retry := a.status.RetryAt; retry != nil && r.now.Before(retry.Time) && a.status.FailedAt != nil {
		return a.status.FailedAt.Time
	}
	return r.stamp().Time
}

func (a *activeStep) isDone() bool {
	return !slices.ContainsFunc(a.findings, func(f task.Finding) bool { return !f.IsDone() })
}

// left says which objects of others the step did not delete.
func (a *activeStep) left() string {
	var all []string
	for _, f := range a.findings {
		all = append(all, f.Left...)
	}
	return message.Sentence(strings.Join(all, "; "))
}

func (a *activeStep) hasWrites() bool {
	return slices.ContainsFunc(a.findings, func(f task.Finding) bool { return len(f.Writes) > 0 })
}

// failed records a failure, once. One that is not tried again has no time.
func (a *activeStep) failed(why string, at time.Time) {
	s := a.status
	why = message.Sentence(why)
	if s.Status == v1beta1.Error && (at.IsZero() && s.Message == why || s.FailedAt != nil && !at.After(s.FailedAt.Time)) {
		return
	}
	s.Status, s.Message = v1beta1.Error, why
	s.FailedAt, s.RetryAt = nil, nil
	if at.IsZero() {
		return
	}
	if s.Attempts++; s.FailingSince == nil {
		s.FailingSince = new(metav1.NewMicroTime(at))
	}
	s.FailedAt = new(metav1.NewMicroTime(at))
	s.RetryAt = new(metav1.NewMicroTime(at.Add(Retries().After(int(s.Attempts) - 1))))
}

// Retries is the back-off of a step that failed. It is slower than that of a ring, because
// the failures are in the status, and each try is a write of it.
func Retries() ring.Backoff { return ring.Backoff{First: time.Second, Most: 5 * time.Minute} }

// recordObjects keeps the inventory. An object is in it before it is applied, and
// until it is deleted.
func (r *run) recordObjects(f *task.Finding) {
	is := func(ref object.Ref) func(v1beta1.InventoryEntry) bool {
		return func(e v1beta1.InventoryEntry) bool { return object.EntryRef(e).Same(ref) }
	}
	for _, ref := range f.Applies {
		if !slices.ContainsFunc(r.status.Inventory, is(ref)) {
			r.status.Inventory = append(r.status.Inventory, v1beta1.InventoryEntry{
				Group: ref.Group, Version: ref.Version, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name,
			})
		}
	}
	for ref, in := range f.Completed {
		if i := slices.IndexFunc(r.status.Inventory, is(ref)); i >= 0 {
			r.status.Inventory[i].CompletedIn = in
		}
	}
	for _, ref := range f.Removes {
		if live, read := r.Snapshot.Objects[ref]; read && live == nil {
			r.status.Inventory = slices.DeleteFunc(r.status.Inventory, is(ref))
		}
	}
}

// recordApplied notes of the objects of a step that is complete what it has applied, so that it is noticed when
// another client changes them.
func (r *run) recordApplied(a *activeStep) {
	if !a.isDone() {
		return
	}
	for i := range r.status.Inventory {
		e := &r.status.Inventory[i]
		for _, f := range a.findings {
			at := slices.IndexFunc(f.Applies, object.EntryRef(*e).Same)
			if at < 0 {
				continue
			}
			if live := r.Snapshot.Objects[f.Applies[at]]; live != nil {
				e.Applied = task.HeadOf(live, r.Snapshot.Instance.Name).Applied
				e.AppliedIn, e.Correction = r.At(a.phase, a.status.Name), nil
			}
		}
	}
}

// recordAbove derives the states of phases and of the plan from those of the steps.
func (r *run) recordAbove() {
	p := r.status.PlanStatus[r.Execution.Plan]
	if p.Status == v1beta1.Pending && r.hasStarted() {
		p.Status = v1beta1.InProgress
	}
	for i := range r.phases {
		recordPhase(&r.phases[i])
	}
	p.Phases = r.phases
	r.status.PlanStatus[r.Execution.Plan] = p
	r.status.AggregatedStatus.Status = p.Status
}

func (r *run) hasStarted() bool {
	return slices.ContainsFunc(r.phases, func(p v1beta1.PhaseStatus) bool { return p.StartedAt != nil })
}

func recordPhase(p *v1beta1.PhaseStatus) {
	complete := !slices.ContainsFunc(p.Steps, func(s v1beta1.StepStatus) bool { return s.Status != v1beta1.Complete })
	switch {
	case complete:
		p.Status = v1beta1.Complete
	case p.StartedAt != nil:
		p.Status = v1beta1.InProgress
	}
}
