package plans

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/execution"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/rollout"
)

// decision is what the ring is about to do for an Instance, and what it waits for.
type decision struct {
	rollout.Plan

	// tree is what the engine decided on; empty if no plan is running.
	tree rollout.Observed
	// needs must be read, and the decision made again; if it is not empty, there is
	// nothing else in the decision.
	needs task.Needs
	// pin is content to keep before the status is written, nil if there is none.
	pin *choice.Version
	// status is the new status. If it changes, it is written first, with the
	// resourceVersion that was observed, and nothing is done if that fails.
	status  v1beta1.InstanceStatus
	changes bool
	// writes are made after that, in this order.
	writes []task.Write
	// sentence says what the Instance waits for now, empty if for nothing. The status
	// says the same, but is not written each time that a word changes.
	sentence string
	// again is true if there is more to decide as soon as all that is written.
	again bool
	// problems are mistakes that stall the Instance.
	problems []choice.Problem
}

// decide decides about an Instance.
func decide(s *snapshot) decision {
	d := &decider{snapshot: s, before: &s.Instance.Status, decision: decision{status: *s.Instance.Status.DeepCopy()}}
	d.decide()
	if !d.needs.IsEmpty() {
		return decision{needs: d.needs, status: s.Instance.Status}
	}
	if len(s.Forbidden) > 0 {
		d.wakeBy(s.now.Add(execution.Retries().Most)) // no watch says that a permission was granted
	}
	d.describe()
	d.changes = !equality.Semantic.DeepEqual(*d.before, d.status)
	if !d.changes {
		d.pin = nil
	}
	return d.decision
}

// decider makes the decision about one Instance.
type decider struct {
	*snapshot
	decision

	// before is the status as it is; [decision.status] is as it will be.
	before *v1beta1.InstanceStatus
	// block is why nothing can be decided at all.
	block *rollout.Block
	// unready is the first workload that is not ready although no plan is running.
	unready string
}

// decide follows a chain; the first link that returns true ends it.
func (d *decider) decide() {
	if d.Instance.DeletionTimestamp != nil {
		d.remove()
		return
	}
	for _, link := range []func() bool{
		d.continues, d.waitsForVersion, d.adopts, d.clearsRequest, d.addsFinalizer, d.startsChange, d.retries, d.startsRequest,
	} {
		if link() {
			return
		}
	}
	d.unready, d.needs = d.Unready()
}

// writesInstance makes a write to the Instance itself, the only write of its pass.
func (d *decider) writesInstance(w task.Write) bool {
	w.Ref = object.Ref{GroupVersionKind: v1beta1.GroupVersion.WithKind("Instance"), Namespace: d.Instance.Namespace, Name: d.Instance.Name}
	w.ResourceVersion = d.Instance.ResourceVersion
	d.writes, d.again = []task.Write{w}, true
	return true
}

// stalls stalls the Instance.
func (d *decider) stalls(problems ...choice.Problem) bool {
	d.problems = append(d.problems, problems...)
	return true
}

// wakeBy notes a moment at which time alone changes the decision.
func (d *decider) wakeBy(at time.Time) {
	if at.After(d.now) && (d.Wake.IsZero() || at.Before(d.Wake)) {
		d.Wake = at
	}
}
