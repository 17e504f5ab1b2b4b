package plans

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/rollout"
)

// Plan is what the ring is about to do for an Instance, and what it waits for.
type Plan struct {
	rollout.Plan
	// Tree is what the engine decided upon; empty if no plan runs.
	Tree rollout.Observed
	// Needs has to be looked at, and then decided again; if it is not empty, there
	// is nothing else in the plan.
	Needs Needs
	// Pin is content that has to be kept before the status is written, nil if none
	// has to be.
	Pin *Version
	// Status is what the status has to be. If it Changes, it is written first, with
	// the resourceVersion that was observed, and nothing is done if that fails.
	Status  v1beta1.InstanceStatus
	Changes bool
	// Writes are made after that, in this order.
	Writes []Write
	// Sentence says what it waits for at this moment, empty if for nothing. The
	// status says the same, but not every time that a word changes.
	Sentence string
	// Again is true if there is more to decide as soon as all that is written.
	Again bool
	// Problems are mistakes that keep the Instance from getting on.
	Problems []Problem
}

// Decide makes the plan for an Instance.
func Decide(o Observed) Plan {
	d := &decision{o: &o, was: &o.Instance.Status, status: *o.Instance.Status.DeepCopy()}
	d.decide()
	if !d.needs.IsEmpty() {
		return Plan{Needs: d.needs, Status: o.Instance.Status}
	}
	if len(d.o.Unseen) > 0 {
		d.sooner(d.o.Now.Add(lastRetry)) // nobody tells of a permission that is granted
	}
	d.report()
	p := Plan{
		Plan: d.plan, Tree: d.tree, Status: d.status, Writes: d.writes, Again: d.again, Problems: d.problems, Sentence: d.sentence,
		Changes: !equality.Semantic.DeepEqual(*d.was, d.status),
	}
	if p.Changes {
		p.Pin = d.pin
	}
	return p
}

// decision is one Instance being decided upon.
type decision struct {
	o *Observed
	// was is the status as it is, status as it will be.
	was    *v1beta1.InstanceStatus
	status v1beta1.InstanceStatus

	tree     rollout.Observed
	plan     rollout.Plan
	needs    Needs
	writes   []Write
	pin      *Version
	again    bool
	problems []Problem
	// block is why nothing can be decided at all.
	block *rollout.Block
	// sentence is what it waits for.
	sentence string
	// unready is the first workload that is not ready though no plan runs.
	unready string
}

// execution is the one that runs, nil if none does.
func (d *decision) execution() *v1beta1.Execution {
	if e := d.status.Execution; e != nil && e.FinishedAt == nil {
		return e
	}
	return nil
}

// decide goes along the chain; the first that has something to say is followed.
func (d *decision) decide() {
	if d.o.Instance.DeletionTimestamp != nil {
		d.remove()
		return
	}
	for _, link := range []func() bool{
		d.goesOn, d.waitsForVersion, d.adopts, d.clearsRequest, d.takesFinalizer, d.changes, d.retries, d.isRequested,
	} {
		if link() {
			return
		}
	}
	d.rest()
}

// alone makes a write to the Instance itself, which is all that a pass does.
func (d *decision) alone(w Write) bool {
	w.Ref = Ref{GroupVersionKind: v1beta1.GroupVersion.WithKind("Instance"), Namespace: d.o.Instance.Namespace, Name: d.o.Instance.Name}
	w.ResourceVersion = d.o.Instance.ResourceVersion
	d.writes, d.again = []Write{w}, true
	return true
}

// problem stalls the Instance.
func (d *decision) problem(problems ...Problem) bool {
	d.problems = append(d.problems, problems...)
	return true
}

// sooner notes a moment at which time alone changes something.
func (d *decision) sooner(at time.Time) {
	if at.After(d.o.Now) && (d.plan.Wake.IsZero() || at.Before(d.plan.Wake)) {
		d.plan.Wake = at
	}
}
