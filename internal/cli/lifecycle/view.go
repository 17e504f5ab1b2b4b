package lifecycle

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/plans"
)

// view shows the progress of a plan to a person who waits for it.
type view interface {
	show(i *v1beta1.Instance, now time.Time)
}

// view is a tree that changes in place on a terminal, and lines elsewhere; and
// nothing if something else reads what is printed at the end.
func (p *planner) view() view {
	switch {
	case p.Output != "":
		return blindView{}
	case display.Redraws(p.out):
		return &liveView{out: p.out, size: func() (int, int) { return display.TerminalSize(p.out) }}
	default:
		return &lineView{out: p.out, steps: map[string]v1beta1.ExecutionStatus{}}
	}
}

type blindView struct{}

func (blindView) show(*v1beta1.Instance, time.Time) {}

// lineView writes a line for whatever has changed, for logs and pipes.
type lineView struct {
	out io.Writer
	// told is the last line of the plan, steps the states that were written.
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
		_, _ = fmt.Fprintln(v.out, strings.TrimRight(fmt.Sprintf("step %s %s %s", key, s.Status, display.StepTook(s, now)), " "))
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
// rests. If not all does, phases without a running step are shown without
// their steps; and if that is not enough, the end is cut off.
func frame(e plans.Explanation, now time.Time, width, height int) []string {
	lines := drawn(e, now, display.EveryPhase)
	if len(lines) >= height {
		lines = drawn(e, now, isOpen)
	}
	if hidden := len(lines) - (height - 1); hidden > 0 && height > 2 {
		lines = append(lines[:height-2], fmt.Sprintf("... and %d more lines", hidden+1))
	}
	for i, line := range lines {
		lines[i] = display.Cut(strings.TrimRight(line, " "), width)
	}
	return lines
}

func drawn(e plans.Explanation, now time.Time, unfolded func(*v1beta1.PhaseStatus) bool) []string {
	var b strings.Builder
	display.PlanTree(&b, display.Style{}, e, now, unfolded)
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}

// isOpen is true of a phase in which something happens, or has failed.
func isOpen(p *v1beta1.PhaseStatus) bool {
	return p.Status == v1beta1.InProgress || p.Status == v1beta1.FatalError
}
