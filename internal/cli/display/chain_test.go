package display

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain"
	"github.com/spillway-dev/spillway/internal/plans"
)

// An explanation fits on a screen of forty lines, however much there is to say, and says what it leaves out. What is
// said once is never left out.
func TestAnExplanationHasFortyLines(t *testing.T) {
	var facts []describe.Fact
	for _, name := range []string{"phase", "uses", "hash", "rolled for it", "used by", "note"} {
		n := map[string]int{"uses": 399, "used by": 5000, "rolled for it": 3}[name]
		for i := range max(1, n) {
			facts = append(facts, describe.FactOf(name, fmt.Sprintf("%s-%d", strings.ReplaceAll(name, " ", "-"), i)))
		}
	}
	plan := plans.Explanation{Plan: "deploy", Status: v1beta1.InProgress, Cause: "parameter SIZE"}
	for i := range 60 {
		phase := v1beta1.PhaseStatus{Name: fmt.Sprintf("phase-%d", i), Status: v1beta1.Complete}
		if i > 50 {
			phase.Status = v1beta1.InProgress
		}
		for j := range 40 {
			step := v1beta1.StepStatus{Name: fmt.Sprintf("step-%d-%d", i, j), Status: v1beta1.Complete}
			if i > 50 && j == 7 {
				step.Status = v1beta1.FatalError
			}
			phase.Steps = append(phase.Steps, step)
		}
		plan.Phases = append(plan.Phases, phase)
	}
	why := explain.Link{Ref: describe.Ref{Kind: "Deployment", Namespace: "shop", Name: "web"}, Sentence: "it waits", Next: "kubectl get pods"}
	for name, c := range map[string]struct {
		chain explain.Chain
		wants []string
	}{
		"facts": {explain.Chain{Links: []explain.Link{why}, Facts: facts}, []string{
			"phase-0", "hash-0", "rolled-for-it-2", "note-0", "uses-0", "used-by-0", "more; -o json has all",
		}},
		"a plan": {explain.Chain{Links: []explain.Link{why}, Details: plan}, []string{"phase-51", "step-51-7", "step-59-7", "18 of 2460 phases and steps, -o json has all"}},
	} {
		var b strings.Builder
		Chain(&b, Style{}, &c.chain, time.Unix(0, 0))
		if n := strings.Count(b.String(), "\n"); n > 40 {
			t.Errorf("%s: %d lines", name, n)
		}
		for _, want := range c.wants {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s does not have %q:\n%s", name, want, b.String())
			}
		}
	}
}
