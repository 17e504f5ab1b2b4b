package dashboard

import (
	"strings"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/rollout"
)

// branch is a phase of a plan, with its steps.
type branch struct {
	name  string
	steps []describe.Unit
}

// branches are the phases of a plan, whose steps are called PHASE/STEP.
func branches(plan *describe.Unit) []branch {
	var all []branch
	for _, step := range plan.Units {
		name, of, _ := strings.Cut(step.Name, "/")
		if len(all) == 0 || all[len(all)-1].name != name {
			all = append(all, branch{name: name})
		}
		step.Name = of
		last := &all[len(all)-1]
		last.steps = append(last.steps, step)
	}
	return all
}

// phase is that of all steps: that of the first that is not complete, unless none has begun.
func (b *branch) phase() rollout.Phase {
	for i := range b.steps {
		if s := &b.steps[i]; !s.IsComplete() {
			if i > 0 && !hasBegun(s) {
				return rollout.PhaseProgressing
			}
			return reached(s)
		}
	}
	return rollout.PhaseComplete
}

// hasBegun is false of a step that is not reached yet: nothing is to be said of it.
func hasBegun(s *describe.Unit) bool {
	return s.Phase != rollout.PhaseWaiting || s.Sentence != "" || s.Since != nil
}

// reached is the phase of a step, empty if it has not been reached.
func reached(s *describe.Unit) rollout.Phase {
	if !hasBegun(s) {
		return ""
	}
	return s.Phase
}

// tree draws a plan: its phases, and the steps of each.
func tree(plan *describe.Unit) *drawing {
	if len(plan.Units) == 0 {
		return nil
	}
	const indent, row = 24, boxHeight + boxGap
	d := &drawing{Width: 2*boxWidth + 3*indent, Text: "plan " + plan.Name + ": " + plan.Amount()}
	d.name(0, 14, isName, plan.Name)
	d.name(0, 30, isAmount, plan.Amount())
	y, last := columnHead, columnHead
	for _, b := range branches(plan) {
		last = y + boxHeight/2
		d.line(boxMark, last, indent-boxMark, 1)
		d.box(indent, y, b.phase(), b.name, "phase "+b.name, nil)
		d.Text += "; phase " + b.name + ": "
		first := y + boxHeight/2
		for i := range b.steps {
			s := &b.steps[i]
			said, title := "not reached yet", "step "+s.Name
			if hasBegun(s) {
				said = strings.TrimSpace(string(s.Phase) + " " + s.Sentence)
			}
			d.line(indent+boxWidth+indent/2, y+boxHeight/2, indent/2, 1)
			d.box(indent+boxWidth+indent, y, reached(s), s.Name, title+": "+said, nil)
			if i > 0 {
				d.Text += ", "
			}
			d.Text += s.Name + " " + said
			y += row
		}
		d.line(indent+boxWidth, first, indent/2, 1)
		d.line(indent+boxWidth+indent/2, first, 1, y-row-first+boxHeight/2)
	}
	d.line(boxMark, columnHead-boxGap, 1, last-columnHead+boxGap)
	d.Height = y
	return d
}
