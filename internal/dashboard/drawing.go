package dashboard

import (
	"fmt"
	"html/template"
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
