package decision

import (
	"time"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/replay"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// Plan is what the ring is about to do, and what it waits for.
type Plan struct {
	rollout.Plan
	// Tree is what the engine decided upon.
	Tree rollout.Observed
	// Writes are to be made in this order. There are none in a pass that permits.
	Writes []Write
	// Status is what the status of the group must be, and Permits is true if the
	// lock or the moves differ, so that this must be written before anything
	// is done. It is always written with the group's resourceVersion. Without
	// Permits it comes last, and only if it differs from what exists.
	Status  v1alpha1.RolloutGroupStatus
	Permits bool
	// NeedsLive is true if what comes next must not be decided from a cache, which
	// may not know of all that others did: a controller that replaced Pods on
	// itself, a holder whose lock has expired, a manager that was to act upon a
	// move and may have, or one that has decided from a newer view. Observe again,
	// live, and decide again immediately.
	NeedsLive bool
	// Problems are mistakes that stall the group.
	Problems []Problem
}

// Decide makes the plan for a group. What moves is the engine's decision; the
// rest is permitting it, doing it, and keeping the records straight.
func Decide(o Observed) Plan {
	return plan(o, func(tree rollout.Observed) rollout.Plan {
		return replay.Decide("RolloutGroup "+o.Group.Namespace+"/"+o.Group.Name, tree)
	})
}

// engine is [rollout.Decide], or what a test puts around it.
type engine func(rollout.Observed) rollout.Plan

// plan asks the engine once about what is observed. If something is permitted, it
// asks once more about what is observed then, because that is what the status says.
func plan(o Observed, ask engine) Plan {
	o.Now = o.Now.Truncate(time.Microsecond) // as it comes back from the status
	d := decide(&o, ask)
	p := Plan{Plan: d.plan, Tree: d.tree, Problems: d.problems, Status: o.Group.Status}
	p.Wake = d.wake()
	if p.NeedsLive = o.isBehind(); p.NeedsLive {
		return p
	}
	if p.Writes = d.holds(); len(p.Writes) == 0 {
		p.Writes = d.fences()
	}
	if len(p.Writes) == 0 {
		after, permits := d.permit()
		p.NeedsLive = d.needsLive(after)
		if permits && !p.NeedsLive {
			p.Permits = true
			p.Status = decide(after, ask).status()
			return p
		}
		p.Writes = d.acts()
	}
	p.Status = d.status()
	return p
}

// decision is one group being decided upon.
type decision struct {
	o        *Observed
	zones    []*zone
	intents  *ring.Intents[v1alpha1.Move]
	tree     rollout.Observed
	plan     rollout.Plan
	problems []Problem
}

// decide asks the engine.
func decide(o *Observed, ask engine) *decision {
	d := &decision{o: o, zones: o.zones(), problems: o.problems()}
	d.intents = o.intents(d.zone)
	d.tree = o.tree(d.zones)
	d.plan = ask(d.tree)
	return d
}

// wake is when time alone changes something: by the engine, or because a move
// or a lock runs out, or a refused write is tried again.
func (d *decision) wake() time.Time {
	wake := d.plan.Wake
	sooner := func(at time.Time) {
		if at.After(d.o.Now) && (wake.IsZero() || at.Before(wake)) {
			wake = at
		}
	}
	sooner(d.intents.Wake())
	sooner(d.o.Refusals.Wake(d.o.Now))
	for _, z := range d.zones {
		for i := range z.Pods {
			if p := &z.Pods[i]; !p.Ready && p.Revision != z.UpdateRevision {
				sooner(z.stuckAt(p))
			}
		}
	}
	if l := d.o.Group.Status.Lock; l != nil && l.Expires != nil {
		sooner(l.Expires.Time)
	}
	if d.phase() != rollout.PhaseComplete {
		sooner(d.o.closes())
	}
	return wake
}
