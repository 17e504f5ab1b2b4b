package dashboard

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/rollout"
)

// drawing is a picture of some size, in pixels.
type drawing struct {
	Width, Height int
	// Text is the drawing for those who do not see it.
	Text   string
	Shapes []shape
}

// shape is a rectangle, a line or a text; a text has no size, and a line no more than one.
type shape struct {
	X, Y, Width, Height int
	// Is is what it stands for, by which it gets its color: a phase or another word.
	Is string
	// Text is what a text says, and the title of a rectangle.
	Text string
	// Of is the object to which it leads, nil if it leads to none; Path is its page.
	Of   *describe.Ref
	Path string
	// Place is where a rectangle is, as its attributes: a template writes one value faster than four.
	Place template.HTMLAttr
}

// The words for what a shape stands for, besides phases.
const (
	isName, isAmount, isLine, isBox = "name", "amount", "line", "box"
	isRange, isExpected, isEnd      = "range", "expected", "end"
)

// drawingWidth is that of all drawings, unless there is less to draw.
const drawingWidth = 960

// draw draws the parts of a unit: a plan as a tree, what is rolled for an object as its queue, and
// others as columns. It is nil of one that has none.
func draw(u *describe.Unit) *drawing {
	switch {
	case u.Cause:
		return queue(u).finish()
	case len(u.Units) == 1 && u.Units[0].Kind == "Plan":
		return tree(&u.Units[0]).finish()
	default:
		return columns(u).finish()
	}
}

// finish sets what a template writes of each shape.
func (d *drawing) finish() *drawing {
	if d == nil {
		return nil
	}
	for i := range d.Shapes {
		s := &d.Shapes[i]
		if s.Of != nil {
			s.Path = pathOf("why", *s.Of)
		}
		s.Place = template.HTMLAttr(fmt.Sprintf(`x="%d" y="%d" width="%d" height="%d"`, s.X, s.Y, s.Width, s.Height)) //nolint:gosec // numbers
	}
	return d
}

// name draws a text.
func (d *drawing) name(x, y int, is, text string) {
	d.Shapes = append(d.Shapes, shape{X: x, Y: y, Is: is, Text: text})
}

// line draws a line from left to right, or downwards.
func (d *drawing) line(x, y, width, height int) {
	d.Shapes = append(d.Shapes, shape{X: x, Y: y, Width: max(1, width), Height: max(1, height), Is: isLine})
}

// Sizes of what has a name, in pixels.
const (
	boxHeight, boxGap, boxMark = 24, 6, 6
	// boxText is how many letters are in a box, letter how wide one is at most.
	boxText, letter = 24, 9
	boxWidth        = boxText*letter + 2*boxMark
)

// box draws what has a name: a frame, with its phase as a mark at the left, and as a sign for
// those who do not tell colors apart.
func (d *drawing) box(x, y int, phase rollout.Phase, name, title string, of *describe.Ref) {
	d.Shapes = append(d.Shapes,
		shape{X: x, Y: y, Width: boxWidth, Height: boxHeight, Is: isBox, Text: title, Of: of},
		shape{X: x, Y: y, Width: boxMark, Height: boxHeight, Is: class(phase)},
		shape{X: x + 2*boxMark, Y: y + 17, Is: isName, Text: sign(phase) + cut(name)})
}

// sign stands before the name of what is not waiting.
func sign(p rollout.Phase) string {
	switch p {
	case rollout.PhaseComplete:
		return "✓ "
	case rollout.PhaseProgressing:
		return "▸ "
	case rollout.PhaseFailed, describe.PhaseStalled, describe.PhaseRolledBack:
		return "✗ "
	default:
		return ""
	}
}

// cut is a name that fits into a box.
func cut(name string) string {
	const fits = boxText - 2 // beside the sign
	if utf8.RuneCountInString(name) <= fits {
		return name
	}
	return string([]rune(name)[:fits-1]) + "…"
}

// Sizes, in pixels.
const (
	columnGap, columnHead = 24, 40
	squareGap             = 2
	// linked is how many squares may be links, so that the keyboard gets past them.
	linked = 100
)

// columns draws the parts of a unit as columns of squares: zones with their Pods, stages with
// their clusters.
func columns(u *describe.Unit) *drawing {
	d := &drawing{Text: u.String()}
	most, total, squares := 1, 0, make([][]shape, len(u.Units))
	for i := range u.Units {
		squares[i] = squaresOf(&u.Units[i])
		most, total = max(most, len(squares[i])), total+len(squares[i])
	}
	if total == 0 {
		return nil
	}
	size, row := scale(most)
	wide := row*(size+squareGap) + columnGap
	fit := max(1, drawingWidth/wide)
	x, y, tall := 0, 0, 0
	for i := range u.Units {
		part := &u.Units[i]
		if i > 0 && i%fit == 0 {
			x, y, tall = 0, y+tall, 0
		}
		d.name(x, y+14, isName, part.Name)
		d.name(x, y+30, isAmount, part.Amount())
		for n, s := range squares[i] {
			s.X, s.Y, s.Width, s.Height = x+n%row*(size+squareGap), y+columnHead+n/row*(size+squareGap), size, size
			if total > linked {
				s.Of = nil
			}
			d.Shapes = append(d.Shapes, s)
		}
		d.Text += fmt.Sprintf("; %s: %s %s", part.Name, part.Amount(), part.Phase)
		tall = max(tall, columnHead+(len(squares[i])+row-1)/row*(size+squareGap)+columnGap)
		x += wide
		d.Width = max(d.Width, x)
	}
	d.Height = y + tall
	return d
}

// scale is how large squares are, and how many are in a row, if there are so many at most.
func scale(most int) (size, row int) {
	switch {
	case most <= 60:
		return 18, 8
	case most <= 500:
		return 9, 20
	default:
		return 4, 60
	}
}

// squaresOf are the parts of a part. Those that are only counted come first, as far as they
// are done, and last.
func squaresOf(part *describe.Unit) []shape {
	named := leaves(part)
	rest := max(0, part.Total-len(named))
	done := min(rest, part.Done)
	var squares []shape
	for range done {
		squares = append(squares, shape{Is: class(rollout.PhaseComplete), Text: "complete"})
	}
	for i := range named {
		u := &named[i]
		s := shape{Is: class(u.Phase), Text: u.Name + ": " + string(u.Phase), Of: &u.Ref}
		if u.Sentence != "" {
			s.Text = u.Name + ": " + u.Sentence
		}
		squares = append(squares, s)
	}
	for range rest - done {
		squares = append(squares, shape{Text: "not reached yet"})
	}
	return squares
}

// leaves are the parts without parts.
func leaves(u *describe.Unit) []describe.Unit {
	var all []describe.Unit
	for i := range u.Units {
		if beneath := leaves(&u.Units[i]); len(beneath) > 0 {
			all = append(all, beneath...)
		} else {
			all = append(all, u.Units[i])
		}
	}
	return all
}

// laneLength is how many workloads of a lane are drawn; the others are counted.
const laneLength = 12

// lane is a column of workloads that are as far as one another.
type lane struct {
	name  string
	units []describe.Unit
}

// lanes are the workloads that are rolled for an object: those that are done, those that roll,
// those that wait for their turn, in their order, and those that wait for something else.
func lanes(of *describe.Unit) [4]lane {
	all := [4]lane{{name: "done"}, {name: "rolling"}, {name: "in the queue"}, {name: "held"}}
	for _, u := range of.Units {
		in := 3
		switch {
		case u.IsComplete():
			in = 0
		case u.Phase == rollout.PhaseProgressing:
			in = 1
		case u.Position > 0:
			in = 2
		}
		all[in].units = append(all[in].units, u)
	}
	slices.SortStableFunc(all[2].units, func(a, b describe.Unit) int { return cmp.Compare(a.Position, b.Position) })
	return all
}

// queue draws what is rolled for an object.
func queue(of *describe.Unit) *drawing {
	if len(of.Units) == 0 {
		return nil
	}
	d := &drawing{Width: drawingWidth, Text: of.String()}
	x := 0
	for _, l := range lanes(of) {
		if len(l.units) == 0 {
			continue
		}
		d.name(x, 14, isName, l.name)
		d.name(x, 30, isAmount, fmt.Sprintf("%d of %d workloads", len(l.units), len(of.Units)))
		var names []string
		y := columnHead
		for i := range l.units[:min(laneLength, len(l.units))] {
			u := &l.units[i]
			name := u.Name
			if u.Position > 0 {
				name = fmt.Sprintf("%d. %s", u.Position, u.Name)
			}
			d.box(x, y, u.Phase, name, cmp.Or(u.Sentence, u.String()+" is "+class(u.Phase)), &u.Ref)
			names = append(names, name)
			y += boxHeight + boxGap
		}
		if rest := len(l.units) - laneLength; rest > 0 {
			more := fmt.Sprintf("and %d more", rest)
			d.name(x, y+14, isAmount, more)
			names, y = append(names, more), y+boxHeight
		}
		d.Text += "; " + l.name + ": " + strings.Join(names, ", ")
		d.Height = max(d.Height, y)
		x += boxWidth + boxGap
	}
	d.Width = x
	return d
}

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
