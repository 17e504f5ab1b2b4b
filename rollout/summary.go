package rollout

import "slices"

// Answer is what a plan says of one unit: that it is moved, or why it is not; or
// neither, if the unit is where it should be.
type Answer struct {
	Step *Step
	Hold *Hold
}

// At answers for the unit at a path. For a unit with others beneath it answers
// with the first step, or else with the most telling hold, among them.
func (p Plan) At(path ...string) Answer {
	for i := range p.Steps {
		if p.Steps[i].Path.Under(path) {
			return Answer{Step: &p.Steps[i]}
		}
	}

	return Answer{Hold: mostTelling(p.Holds, path)}
}

func mostTelling(holds []Hold, path Path) *Hold {
	var telling *Hold

	for i := range holds {
		h := &holds[i]
		if h.Path.Under(path) && (telling == nil || h.Reason.tells() < telling.Reason.tells()) {
			telling = h
		}
	}

	return telling
}

// Message is the sentence of the answer, empty if there is nothing to say.
func (a Answer) Message() string {
	switch {
	case a.Step != nil:
		return a.Step.Message()
	case a.Hold != nil:
		return a.Hold.Message
	default:
		return ""
	}
}

// Message says what the step does, as a sentence like that of a [Hold].
func (s Step) Message() string {
	name := "the rollout"
	if len(s.Path) > 0 {
		name = s.Path[len(s.Path)-1]
	}

	return s.Cause().Sentence(name, 0)
}

// Cause is what the Message is made of, for programs, like that of a [Hold].
func (s Step) Cause() Cause {
	if s.To == Removed {
		return Cause{Does: "is being removed"}
	}

	does := "is updating"
	if s.From != "" {
		does += " from " + s.From
	}

	does += " to " + s.To
	if s.Repair && s.From != "" {
		does += " (already unavailable)"
	}

	return Cause{Does: does}
}

// Under tells whether the path is that of a unit or of one beneath it.
func (p Path) Under(unit Path) bool {
	return len(p) >= len(unit) && slices.Equal(p[:len(unit)], unit)
}

// telling are the engine's reasons, the one that says most about a whole first;
// what a ring has blocked comes after a pause.
var telling = []Reason{
	ReasonFailed, ReasonDeadline, ReasonGateRefused, ReasonPaused, ReasonRemovalApproval, reasonOfRing,
	ReasonUnhealthy, ReasonProgressing, ReasonLocked, ReasonRetry, ReasonSoak, ReasonGate,
	ReasonBudget, ReasonRate, ReasonOrder, ReasonTurn,
}

// reasonOfRing stands for the reasons of the rings.
const reasonOfRing Reason = ""

func (r Reason) tells() int {
	if i := slices.Index(telling, r); i >= 0 {
		return i
	}

	return slices.Index(telling, reasonOfRing)
}

// Counts are numbers of leaves beneath a unit.
type Counts struct {
	// Total are all leaves.
	Total int
	// Updated are at their target, whatever their health.
	Updated int
	// Available are up, at whatever revision; at their target for MinReady too.
	Available int
	// Ready are both: where they should be.
	Ready int
	// Failed are those that have failed or missed a deadline, and all that were
	// unfinished when a unit ran out of time.
	Failed int
	// Removals are to be removed and not gone.
	Removals int
	// Evident are those that show that their target is good; see [Policy].MinEvidence.
	Evident int
}

// Count counts the leaves beneath the unit at a path; all of them for no path,
// none if there is no such unit.
func Count(o Observed, path ...string) Counts {
	d := survey(o)
	n := d.nodes[0]

	for _, name := range path {
		if n = n.child(name); n == nil {
			return Counts{}
		}
	}

	return n.counts()
}

func (n *node) child(name string) *node {
	for _, c := range n.children {
		if c.unit.Name == name {
			return c
		}
	}

	return nil
}

func (n *node) counts() Counts {
	return Counts{
		Total: n.leaves, Updated: n.updated, Available: n.available, Ready: n.ready,
		Failed: n.failed, Removals: n.removals, Evident: n.evident,
	}
}
