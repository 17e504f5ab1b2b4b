package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans"
)

// writePlan writes one sentence, then the tree of phases and steps.
func writePlan(w io.Writer, s style, e plans.Explanation, now time.Time) {
	writeTree(w, s, e, now, everyPhase)
}

func everyPhase(*v1beta1.PhaseStatus) bool { return true }

// writeTree is writePlan, with the steps of those phases alone that are unfolded.
func writeTree(w io.Writer, s style, e plans.Explanation, now time.Time, unfolded func(*v1beta1.PhaseStatus) bool) {
	_, _ = fmt.Fprintf(w, "%s.\n\n", s.fold(e.Sentence, 0))
	f := newFacts(w, s)
	writeSteps(f, &e, now, unfolded)
	f.write()
}

// writeSteps writes the tree alone.
func writeSteps(f *facts, e *plans.Explanation, now time.Time, unfolded func(*v1beta1.PhaseStatus) bool) {
	if e.Plan == "" {
		f.line("No plan has run yet.")
		return
	}
	f.line("plan "+e.Plan, string(e.Status), planTook(e, now), e.Cause)
	for i := range e.Phases {
		phase := &e.Phases[i]
		f.line("  phase "+phase.Name, string(phase.Status), phaseTook(phase, now), "")
		for j := range phase.Steps {
			if !unfolded(phase) {
				break
			}
			step := &phase.Steps[j]
			f.line("    step "+step.Name, string(step.Status), stepTook(step, now), step.Message)
		}
	}
}

func planTook(e *plans.Explanation, now time.Time) string {
	if e.Started == nil {
		return ""
	}
	return elapsed(*e.Started, e.Ended, now)
}

// phaseTook is how long a phase took: until its last step was complete.
func phaseTook(p *v1beta1.PhaseStatus, now time.Time) string {
	if p.StartedAt == nil {
		return ""
	}
	if p.Status.IsRunning() {
		return elapsed(p.StartedAt.Time, nil, now)
	}
	var last *time.Time
	for i := range p.Steps {
		if at := p.Steps[i].FinishedAt; at != nil && (last == nil || last.Before(at.Time)) {
			last = &at.Time
		}
	}
	if last == nil || p.Status != v1beta1.Complete {
		return ""
	}
	return elapsed(p.StartedAt.Time, last, now)
}

// stepTook is how long a step took, or has taken so far; empty if nobody knows.
func stepTook(s *v1beta1.StepStatus, now time.Time) string {
	switch {
	case s.StartedAt == nil:
		return ""
	case s.FinishedAt != nil:
		return elapsed(s.StartedAt.Time, &s.FinishedAt.Time, now)
	case s.Status.IsRunning():
		return elapsed(s.StartedAt.Time, nil, now)
	default:
		return ""
	}
}

// elapsed is the time until now in whole seconds, if there is no end yet.
func elapsed(from time.Time, to *time.Time, now time.Time) string {
	if to != nil {
		return to.Sub(from).Round(100 * time.Millisecond).String()
	}
	return max(now.Sub(from), 0).Truncate(time.Second).String()
}

// view shows how a plan goes to somebody who waits for it.
type view interface {
	show(i *v1beta1.Instance, now time.Time)
}

// view is a tree that changes in place on a terminal, and lines elsewhere; and
// nothing if something else reads what is printed at the end.
func (p *planner) view() view {
	width, _ := terminalSize(p.out)
	switch {
	case p.output != "":
		return blindView{}
	case width > 0:
		return &liveView{out: p.out, size: func() (int, int) { return terminalSize(p.out) }}
	default:
		return &lineView{out: p.out, steps: map[string]v1beta1.ExecutionStatus{}}
	}
}

type blindView struct{}

func (blindView) show(*v1beta1.Instance, time.Time) {}

// lineView writes a line for whatever has changed, for logs and pipes.
type lineView struct {
	out io.Writer
	// told is the last line of the plan, steps the states that were told.
	told  string
	steps map[string]v1beta1.ExecutionStatus
}

func (v *lineView) show(i *v1beta1.Instance, now time.Time) {
	s := &i.Status
	plan := s.PlanStatus[s.Execution.Plan]
	for p := range plan.Phases {
		for j := range plan.Phases[p].Steps {
			v.step(plan.Phases[p].Name, &plan.Phases[p].Steps[j], now)
		}
	}
	line := fmt.Sprintf("plan %s %s", s.Execution.Plan, plan.Status)
	if s.Place != "" {
		line += " at " + s.Place
	}
	if s.WaitingFor != "" {
		line += ": " + s.WaitingFor
	}
	if line != v.told {
		_, _ = fmt.Fprintln(v.out, line)
		v.told = line
	}
}

// step tells of a step that has ended, or that fails.
func (v *lineView) step(phase string, s *v1beta1.StepStatus, now time.Time) {
	key := phase + "/" + s.Name
	if v.steps[key] == s.Status {
		return
	}
	v.steps[key] = s.Status
	if s.Status == v1beta1.Error || s.Status.IsTerminal() {
		_, _ = fmt.Fprintln(v.out, strings.TrimRight(fmt.Sprintf("step %s %s %s", key, s.Status, stepTook(s, now)), " "))
	}
}

// liveView draws the tree over the one that it has drawn before.
type liveView struct {
	out  io.Writer
	size func() (width, height int)
	// drawn is how many lines it has drawn.
	drawn int
}

// eraseBelow moves to the beginning of a line so many lines above, and erases what
// is below.
const eraseBelow = "\r\x1b[%dA\x1b[J"

func (v *liveView) show(i *v1beta1.Instance, now time.Time) {
	width, height := v.size()
	lines := frame(plans.ExplanationOf(i), now, width, height)
	if v.drawn > 0 {
		_, _ = fmt.Fprintf(v.out, eraseBelow, v.drawn)
	}
	_, _ = fmt.Fprintln(v.out, strings.Join(lines, "\n"))
	v.drawn = len(lines)
}

// frame is what fits on a terminal, the line below included at which the cursor
// rests. If not all does, phases without a step on its way are shown without
// their steps; and if that is not enough, the end is cut off.
func frame(e plans.Explanation, now time.Time, width, height int) []string {
	lines := drawn(e, now, everyPhase)
	if len(lines) >= height {
		lines = drawn(e, now, isOpen)
	}
	if hidden := len(lines) - (height - 1); hidden > 0 && height > 2 {
		lines = append(lines[:height-2], fmt.Sprintf("... and %d more lines", hidden+1))
	}
	for i, line := range lines {
		lines[i] = cut(strings.TrimRight(line, " "), width)
	}
	return lines
}

func drawn(e plans.Explanation, now time.Time, unfolded func(*v1beta1.PhaseStatus) bool) []string {
	var b strings.Builder
	writeTree(&b, style{}, e, now, unfolded)
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}

// isOpen is true of a phase in which something happens, or has failed.
func isOpen(p *v1beta1.PhaseStatus) bool {
	return p.Status == v1beta1.InProgress || p.Status == v1beta1.FatalError
}

// cut shortens a line that would wrap.
func cut(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:max(width-1, 0)]) + "…"
}
