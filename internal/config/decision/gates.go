package decision

import (
	"slices"

	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/gates/ask"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// GateWrite creates the RolloutGate of a question, says of one during a stage that this is over,
// or deletes one that is about a content that an object does not have any more.
type GateWrite struct {
	Namespace   string
	Create      *ask.Question
	End, Delete *ask.Gate
}

// Change identifies the write.
func (w *GateWrite) Change() ring.Change {
	switch {
	case w.Create != nil:
		return CreatedGate(w.Namespace, w.Create.Name())
	case w.End != nil:
		return ring.Change{Act: "EndGate", Object: w.Namespace + "/" + w.End.Name, Version: w.End.ResourceVersion}
	default:
		return ring.Change{Act: "DeleteGate", Object: w.Namespace + "/" + w.Delete.Name, Version: w.Delete.ResourceVersion}
	}
}

// CreatedGate is what the creation of a RolloutGate is called.
func CreatedGate(namespace, name string) ring.Change {
	return ring.Change{Act: "CreateGate", Object: namespace + "/" + name}
}

// gates are those of a stage as the engine sees them.
func (s *staging) gates(c *course, stage *policy.Stage) []rollout.Gate {
	questions := c.policy.Questions(stage, c.Release)
	gates := make([]rollout.Gate, len(questions))
	for i := range questions {
		gates[i] = s.o.Gates[c.policy.UID()].Engine(&questions[i])
	}
	return gates
}

// gateWrites create the RolloutGates that releases have reached, say of those during a stage that
// it is over, and delete those that are about a content that is not the present one of its object.
func (s *staging) gateWrites() []GateWrite {
	if !s.o.GatesKnown {
		return nil
	}
	var writes []GateWrite
	for _, c := range s.ordered {
		for i := range c.policy.Stages {
			stage := &c.policy.Stages[i]
			at := s.plan.Group(append(s.at(c), stageName(stage))...)
			for _, q := range s.o.Gates[c.policy.UID()].Missing(c.policy.Questions(stage, c.Release)) {
				if ask.IsReached(q.When, at) {
					writes = append(writes, GateWrite{Namespace: c.namespace, Create: &q})
				}
			}
		}
	}
	return slices.Concat(writes, s.endingGates(), s.o.outdatedGates())
}

// endingGates are those during stages that are over. That of a release that is not under way any
// more is, once it is known of all workloads what they use.
func (s *staging) endingGates() []GateWrite {
	var writes []GateWrite
	for _, p := range s.o.Policies {
		for _, g := range s.o.Gates[p.UID()] {
			if !g.Rolls {
				continue
			}
			at, found := s.stageOf(p, &g)
			if (found || s.o.IsKnown()) && ask.IsOver(at) {
				writes = append(writes, GateWrite{Namespace: p.Namespace, End: &g})
			}
		}
	}
	return writes
}

// stageOf is the stage of a gate, of a release that is under way.
func (s *staging) stageOf(p *policy.Policy, g *ask.Gate) (at rollout.Group, found bool) {
	for _, c := range s.ordered {
		if c.policy == p && policy.Revision(c.Release) == g.Revision {
			return s.plan.Group(append(s.at(c), policy.UnitOf(g.Stage))...), true
		}
	}
	return at, false
}

// outdatedGates are deleted once it is known of all workloads which contents they use.
func (o *Observed) outdatedGates() []GateWrite {
	var writes []GateWrite
	if len(o.Gates) == 0 || !o.IsKnown() {
		return nil
	}
	present := map[string]bool{}
	for i := range o.Workloads {
		w := &o.Workloads[i]
		for _, r := range w.ReleasesOf(nil) {
			present[w.Namespace+" "+policy.Revision(r)] = true
		}
	}
	for _, p := range o.Policies {
		for _, g := range o.Gates[p.UID()].Outdated(func(_, revision string) bool { return present[p.Namespace+" "+revision] }) {
			writes = append(writes, GateWrite{Namespace: p.Namespace, Delete: &g})
		}
	}
	return writes
}
