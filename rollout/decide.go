package rollout

import "time"

// Decide returns what may happen next. It performs no I/O and reads no clock.
//
// It goes over the tree four times: up, to learn what is true of each unit
// ([survey]); down, to learn why it may not move ([restrain]); over the leaves
// that nothing restrains, best first, to let as many move as the budgets and
// rates allow ([admit]); and once more to write it down ([report]).
func Decide(o Observed) Plan {
	d := survey(o)
	d.share()
	d.restrain()
	d.admit()

	return d.report()
}

// decision is one run of Decide.
type decision struct {
	now  time.Time
	self string
	// nodes are the units in the order of the tree, the root first.
	nodes []*node
	// names is where paths are. A path of which much is said is made only once.
	names    []string
	last     *node
	lastPath Path
	// lock is the first unit that has a lock, nil if none has.
	lock *node
	// steps are the leaves that move, in the order in which they do.
	steps []*node
	// sums are what the plan says of each unit, once it has been decided.
	sums []sum
}

// restrain goes down the tree and finds for each unit why it may not move, and
// for each that has only to wait, what it waits for.
func (d *decision) restrain() {
	for _, n := range d.nodes {
		d.chooseTurn(n)
		d.inheritRestraint(n)
		n.hold = d.waiting(n)
	}

	for _, n := range d.nodes {
		n.mayStart = n.unit.Whole != nil && d.canStart(n)
	}
}

// report writes the plan down from what was found.
func (d *decision) report() Plan {
	var p Plan

	p.Steps = d.stepsTaken()
	p.Holds = d.holds()
	p.Groups = d.groups(p.Holds)
	p.Phase = d.sums[0].phase()
	p.Wake = d.wake()
	p.Acquire = d.acquire()
	p.Release = d.release()

	return p
}

func (d *decision) stepsTaken() []Step {
	steps := make([]Step, len(d.steps))
	for i, n := range d.steps {
		start, to := d.starts(n)
		steps[i] = Step{
			Path: d.path(n), From: n.unit.Leaf.Current, To: to,
			Repair: !n.up && !n.isRemoval(), Start: start,
		}
	}

	return steps
}

func (d *decision) holds() []Hold {
	size := 0
	for _, n := range d.nodes {
		size += one(n.hold != nil)
	}

	holds := make([]Hold, 0, size)

	for _, n := range d.nodes {
		n.held = len(holds)
		if n.hold != nil {
			holds = append(holds, d.holdOf(n))
		}
	}

	return holds
}

// wake is the earliest moment at which time alone changes the plan.
func (d *decision) wake() time.Time {
	var wake time.Time

	for _, n := range d.nodes {
		if n.hold != nil {
			wake = d.sooner(wake, n.hold.until)
		}

		wake = d.sooner(wake, d.runsOut(n))
	}

	return wake
}

// sooner is the earlier of two moments, if the second is one and lies ahead.
func (d *decision) sooner(wake, at time.Time) time.Time {
	if !at.After(d.now) || !wake.IsZero() && wake.Before(at) {
		return wake
	}

	return at
}

// reached tells whether a moment has come; one that is not known has not.
func (d *decision) reached(at time.Time) bool {
	return !at.IsZero() && !d.now.Before(at)
}
