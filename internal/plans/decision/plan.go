package decision

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/execution"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/rollout"
)

// shortestLook is how soon objects that nothing watches are read again.
const shortestLook = 2 * time.Second

// Decision is what the ring is about to do for an Instance, and what it waits for.
type Decision struct {
	rollout.Plan

	// Needs must be read, and the decision made again; if it is not empty, there is
	// nothing else in the decision but MayPin.
	Needs task.Needs
	// Pin is content to keep before the status is written, nil if there is none. It is that
	// of an execution that begins, so the status changes.
	Pin *choice.Version
	// MayPin is what Pin will be if what must be read does not change that, so that it can be
	// found out meanwhile whether that content is kept.
	MayPin *choice.Version
	// Status is the new status. If it changes, it is written first, with the
	// resourceVersion that was observed, and nothing is done if that fails.
	Status  v1beta1.InstanceStatus
	Changes bool
	// Writes are made after that, in this order.
	Writes []write.Write
	// Sentence says what the Instance waits for now, empty if for nothing. The status
	// says the same, but is not written each time that a word changes.
	Sentence string
	// Again is true if there is more to decide as soon as all that is written.
	Again bool
	// Hidden are values that no message may say.
	Hidden task.Hidden
	// problems are mistakes that stall the Instance.
	problems []choice.Problem
}

// Decide decides about an Instance.
func Decide(s *Snapshot) Decision {
	d := &decider{Snapshot: s, before: &s.Instance.Status, Decision: Decision{Status: *s.Instance.Status.DeepCopy()}}
	if d.takesSecrets() {
		d.decide()
	}
	if !d.Needs.IsEmpty() {
		return Decision{Needs: d.Needs, MayPin: d.Pin, Status: s.Instance.Status}
	}
	if len(s.Forbidden) > 0 {
		d.wakeBy(s.Now.Add(execution.Retries().Most)) // no watch says that a permission was granted
	}
	if s.Unwatched {
		d.wakeBy(d.nextLook())
	}
	d.Decision.Hidden = d.Snapshot.Hidden //nolint:staticcheck // both have it
	d.describe()
	d.Changes = !equality.Semantic.DeepEqual(*d.before, d.Status)
	return d.Decision
}

// nextLook is when objects that nothing watches are read again: ever later, the longer that the
// steps in progress take.
func (d *decider) nextLook() time.Time {
	var since time.Time
	if e := d.Status.Running(); e != nil {
		since = execution.LastStart(d.Status.PlanStatus[e.Plan].Phases)
	}
	if since.IsZero() {
		return d.Now.Add(execution.Retries().Most)
	}
	return d.Now.Add(min(max(d.Now.Sub(since)/2, shortestLook), execution.Retries().Most))
}

// decide follows a chain; the first link that returns true ends it.
func (d *decider) decide() {
	if d.Instance.DeletionTimestamp != nil {
		d.remove()
		return
	}
	ends := slices.ContainsFunc([]func() bool{
		d.continues, d.waitsForVersion, d.hasWrongAccount, d.lacksSecrets, d.hasWrongGates, d.adopts, d.clearsRequest, d.addsFinalizer, d.startsChange, d.retries, d.startsRequest,
	}, func(link func() bool) bool { return link() })
	if !d.Needs.IsEmpty() || d.Status.Running() != nil || d.block != nil || len(d.problems) > 0 {
		return
	}
	if ends {
		d.next = d.outstanding()
	}
	d.endGates()
	if d.next == "" {
		if d.Version != nil {
			d.Rules = task.NewRules(d.Version.Spec.Health)
		}
		d.unready, d.Needs = d.Unready()
		d.unready = d.Snapshot.Hidden.In(d.unready)
		d.findsDrift()
	}
}

// endGates says of gates during a unit that this is over, once no plan runs any more.
func (d *decider) endGates() {
	if len(d.Writes) > 0 {
		return // the next pass does
	}
	for i := range d.Gates {
		if g := &d.Gates[i]; g.Rolls {
			d.Writes = append(d.Writes, execution.EndGate(&d.Snapshot.Snapshot, g, d.Now))
		}
	}
}

// outstanding is the plan that the next pass begins, empty if there is none: a pass that
// ends a plan, or writes the Instance itself, leaves the rest of the chain undecided. A
// change that is invalid stalls the Instance already now.
func (d *decider) outstanding() string {
	if d.Version == nil {
		return ""
	}
	chosen, problems := choice.Choose(choice.ChangeOf(d.Instance, &d.Status, d.Version, d.Former))
	switch {
	case len(problems) > 0:
		d.stalls(problems...)
		return ""
	case chosen.Plan != "" && !d.hasFailed():
		return chosen.Plan
	}
	if request := &d.Instance.Spec.PlanExecution; request.PlanName != "" && !d.isAnswered(request) {
		return request.PlanName
	}
	return ""
}
