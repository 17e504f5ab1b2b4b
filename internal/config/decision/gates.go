package decision

import (
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/gates/ask"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// GateWrite creates the RolloutGate of a question, or deletes one that is about a content that
// an object does not have any more.
type GateWrite struct {
	Namespace string
	Create    *ask.Question
	Delete    *ask.Gate
}

// Change identifies the write.
func (w *GateWrite) Change() ring.Change {
	if w.Create != nil {
		return CreatedGate(w.Namespace, w.Create.Name())
	}
	return ring.Change{Act: "DeleteGate", Object: w.Namespace + "/" + w.Delete.Name, Version: w.Delete.ResourceVersion}
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

// gateWrites create the RolloutGates that releases have reached, and delete those that are about
// a content that is not the present one of its object.
func (s *staging) gateWrites() []GateWrite {
	if !s.o.GatesKnown {
		return nil
	}
	var writes []GateWrite
	for _, c := range s.ordered {
		for i := range c.policy.Stages {
			stage := &c.policy.Stages[i]
			at := s.plan.Group(c.policy.String(), c.path(), stageName(stage))
			for _, q := range s.o.Gates[c.policy.UID()].Missing(c.policy.Questions(stage, c.Release)) {
				if q.IsReached(at) {
					writes = append(writes, GateWrite{Namespace: c.namespace, Create: &q})
				}
			}
		}
	}
	return append(writes, s.o.outdatedGates()...)
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
