package decision

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/cel-go/cel"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/expression"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// A check is asked before a cluster is assigned something, and at no other time. What cannot be known
// does not hold. A cluster that goes back to what it ran is not checked: what failed must not stay because of it.

// factsFor is how long it is believed what a cluster serves. One that is skipped is asked again then.
const factsFor = time.Minute

// check is a condition of clusters.
type check struct {
	*v1alpha1.ClusterCheck

	condition *expression.Expression
	budget    *expression.Budget
	// asks is true if it depends on what the cluster serves.
	asks bool
}

// NeedsFacts reports whether a check of the module depends on what clusters serve.
func NeedsFacts(m *model.Module) bool {
	checks := m.Rollout().Checks
	for i := range checks {
		if asks(&checks[i]) {
			return true
		}
	}
	return false
}

func asks(c *v1alpha1.ClusterCheck) bool {
	return strings.Contains(c.Expression, "version") || strings.Contains(c.Expression, "apis")
}

// compileChecks compiles the checks of the module.
func (d *decision) compileChecks() {
	checks := d.o.Module.Rollout().Checks
	for i := range checks {
		c := &checks[i]
		condition, err := expression.Compile(c.Expression, cel.BoolType, cel.Variable("cluster", cel.DynType))
		if err != nil {
			d.problems = append(d.problems, fmt.Sprintf("spec.rollout.checks[%d].expression: %v; the variable is cluster", i, err))
			continue
		}
		d.checks = append(d.checks, check{c, condition, expression.NewBudget(), asks(c)})
	}
}

// addChecks says why a cluster may not be assigned what it is to get, if a check does not hold on it.
func (d *decision) addChecks(m *member) {
	if len(d.checks) == 0 || !m.belongs || m.skip != nil || !d.isToBeAssigned(m) {
		return
	}
	for i := range d.checks {
		c := &d.checks[i]
		why := d.whyUnchecked(c, m)
		if why == "" {
			continue
		}
		if m.barred = true; m.move == nil {
			m.skip = &rollout.Block{Reason: ReasonCheck, Message: "skipped until check " + c.Name + " holds: " + model.Short(why, model.SaidLength)}
			m.leaf.NoEvidence, m.leaf.Cause = "skipped, as check "+c.Name+" does not hold", ReasonCheck
		}
		return
	}
}

// isToBeAssigned is true of a cluster that is not at what it is to get, or is about to be assigned that.
func (d *decision) isToBeAssigned(m *member) bool {
	target, has := d.target, m.leaf.Current
	if m.isNew {
		target = d.good
	}
	if m.move != nil && m.isAssigned() {
		has = m.record.Revision
	}
	return (m.move != nil || has != target) && !d.goesBack(has)
}

// whyUnchecked is why a check does not hold on a cluster, empty if it does. When a cluster was permitted to be
// assigned something it held, so what it said before that is good enough.
func (d *decision) whyUnchecked(c *check, m *member) string {
	if !c.asks {
		return evaluate(c, m)
	}
	f := m.Facts
	isFresh := f != nil && d.o.Now.Before(f.At.Add(factsFor))
	if !isFresh && (len(d.asks) == 0 || d.asks[len(d.asks)-1] != m.Name) {
		d.asks = append(d.asks, m.Name)
	}
	var why string
	switch {
	case f == nil:
		why = "it is not known yet what the cluster serves"
	case f.Problem != "":
		why = "it is not known what the cluster serves: " + f.Problem
	default:
		if why = evaluate(c, m); why == "" && !isFresh && m.move == nil {
			why = "it is not known yet what the cluster serves now"
		}
	}
	if why != "" && isFresh {
		d.askAgain = ring.Earlier(d.askAgain, f.At.Add(factsFor))
	}
	return why
}

func evaluate(c *check, m *member) string {
	of := map[string]any{"name": m.Name, "labels": m.Labels}
	said := ""
	if f := m.Facts; f != nil && c.asks {
		of["version"], of["apis"] = map[string]any{"major": f.Major, "minor": f.Minor, "text": f.Version}, f.APIs
		said = " (its Kubernetes is " + f.Version + ")"
	}
	holds, err := c.condition.HoldsWithin(c.budget, map[string]any{"cluster": of})
	switch {
	case err != nil:
		return err.Error()
	case holds:
		return ""
	case c.Message != "":
		return c.Message + said
	default:
		return message.Quote(c.Expression) + " is false" + said
	}
}
