package gates

import (
	"time"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/gates/measure"
)

// maxPlayed bounds the measurements that one call of [Play] makes.
const maxPlayed = 2

// Play decides about a gate as the manager does, if its source always answers with this
// result. The answer is the gate with its new status, nil if that stays, and when to play
// again, zero for never.
func Play(g *v1alpha1.RolloutGate, t *v1alpha1.GateTemplate, answers v1alpha1.GateResult, now time.Time) (after *v1alpha1.RolloutGate, wake time.Time) {
	s := snapshot{now: now, gate: g, template: t}
	for range maxPlayed {
		p := decide(&s)
		state := p.persist
		if p.measure {
			measured := measure.Add(p.state, p.rules, measure.Sample{At: now, Result: answers, Value: "supposed"})
			state = &measured
		}
		if state == nil {
			return after, p.wake
		}
		after = s.gate.DeepCopy()
		describe(after, state, now)
		s.gate = after
	}
	return after, decide(&s).wake
}
