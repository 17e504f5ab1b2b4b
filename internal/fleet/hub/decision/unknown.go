package decision

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/rollout"
)

// A cluster is unknown while nothing stands for it on the hub, or this view does not show
// it: its Secret is being replaced, or a watch is behind. What runs there goes on, and may be
// unready. So it counts as down until its assemblage is gone, or says that it is ready.

// findUnknown finds the unknown clusters that may be down, in the order of their names.
func (d *decision) findUnknown() {
	for _, m := range d.absent {
		if d.assess(m); d.mayBeDown(m) {
			m.stage = d.stageOfUnknown(m)
			d.unknown = append(d.unknown, m)
		}
	}
	slices.SortFunc(d.unknown, func(a, b *member) int { return strings.Compare(a.Name, b.Name) })
}

// mayBeDown is true of an unknown cluster that takes a place in the budget, unless its
// assemblage says that what it is assigned is ready. One that is new or pinned takes none,
// known or not.
func (d *decision) mayBeDown(m *member) bool {
	switch {
	case m.isLeaving():
		return true
	case m.isHeld() || m.isNew:
		return false
	case m.move != nil:
		return true
	default:
		return m.isAssigned() && (m.leaf.Health != rollout.Healthy || m.isDrifted() || d.isSoaking(m))
	}
}

// isSoaking is true of a cluster that has not been ready at the target for long enough.
func (d *decision) isSoaking(m *member) bool {
	soak := seconds(d.o.Module.Rollout().MinReadySeconds)
	return m.leaf.Current == d.target && d.o.Now.Before(m.leaf.HealthySince.Add(soak))
}

// stageOfUnknown is the stage of an unknown cluster that was assigned the target: the one
// that was open by then, as the status says when each has begun, and the first where it
// does not say so. Of any other it is unknown, and it keeps no stage from being complete.
func (d *decision) stageOfUnknown(m *member) int {
	if m.isLeaving() || m.leaf.Current != d.target || len(d.stages) == 0 {
		return anyStage
	}
	stage := 0
	for i := range d.stages {
		if began, _ := d.former(d.stages[i].name); began != nil && !began.After(m.since()) {
			stage = i
		}
	}
	return stage
}

// unknownIn are the unknown clusters of a stage.
func (d *decision) unknownIn(stage int) []*member {
	return slices.DeleteFunc(slices.Clone(d.unknown), func(m *member) bool { return m.stage != stage })
}

// unknownUnit has unknown clusters of a stage, or of any. They count in the budgets of all
// stages: by their labels, which are unknown, they may belong to another one.
func (d *decision) unknownUnit(members []*member, in int) rollout.Unit {
	unit := rollout.Unit{Group: true, Policy: d.stagePolicy(&stage{name: unitUnmatched})}
	for _, m := range members {
		unit.Children = append(unit.Children, d.unknownLeaf(m))
	}
	for i := range d.stages {
		if i != in {
			unit = rollout.Unit{Group: true, Policy: d.stagePolicy(&d.stages[i]), Children: []rollout.Unit{unit}}
		}
	}
	if in == anyStage { // what is in a stage is beneath all of them
		unit = rollout.Unit{Group: true, Policy: d.totalPolicy(), Children: []rollout.Unit{unit}}
	}
	unit.Name = unitUnknown
	return unit
}

// unknownLeaf is an unknown cluster as the engine sees it: nothing is assigned to it, and
// it is where it should be only once it is known.
func (d *decision) unknownLeaf(m *member) rollout.Unit {
	unit := rollout.Unit{Name: m.Name}
	if m.isLeaving() {
		unit.Leaf = leavingLeaf("nothing of it is known at present")
		return unit
	}
	// Without a revision it is none of those of which a part may be removed without approval.
	unit.Leaf = rollout.Leaf{Target: "(known)", Health: rollout.Degraded, Reason: "unknown at present"}
	unit.Block = &rollout.Block{Reason: ReasonUnknown, Message: d.whyUnknown(m)}
	return unit
}

func (d *decision) whyUnknown(m *member) string {
	return fmt.Sprintf("neither a Cluster nor a labeled Secret %s found, and it is assigned %s", cluster.SecretName(m.Name), m.leaf.Current)
}

// find is a cluster by name, known or not, nil if nothing is known of it.
func (d *decision) find(name string) *member {
	if m := d.known[name]; m != nil {
		return m
	}
	return d.absent[name]
}

// findOrAdd is find, and adds a cluster that is unknown.
func (d *decision) findOrAdd(name string) *member {
	m := d.find(name)
	if m == nil {
		m = &member{Cluster: &model.Cluster{Name: name, Ready: true}} // what its assemblage says is all that is known
		d.absent[name] = m
	}
	return m
}
