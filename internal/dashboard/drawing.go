package dashboard

import (
	"fmt"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/rollout"
)

// drawing shows the parts of an object as columns of squares: zones with their Pods, stages
// with their clusters, phases with their steps.
type drawing struct {
	Width, Height int
	// Text is the drawing for those who do not see it.
	Text    string
	Columns []column
}

// column is a part.
type column struct {
	X, Y          int
	Name, Counted string
	Phase         rollout.Phase
	Squares       []square
}

// square is a part of a part.
type square struct {
	X, Y, Size  int
	Phase       rollout.Phase
	Title, Path string
}

// Sizes, in pixels.
const (
	drawingWidth, columnGap, columnHead = 960, 24, 40
	squareGap                           = 2
	// linked is how many squares may be links, so that the keyboard gets past them.
	linked = 100
)

// draw draws the parts of a unit, nil if it has none.
func draw(u *describe.Unit) *drawing {
	d := &drawing{Text: u.String()}
	most, squares := 1, make([][]square, len(u.Units))
	total := 0
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
		c := column{X: x, Y: y, Name: part.Name, Phase: part.Phase, Counted: amount(part)}
		for n, s := range squares[i] {
			s.X, s.Y, s.Size = x+n%row*(size+squareGap), y+columnHead+n/row*(size+squareGap), size
			if total > linked {
				s.Path = ""
			}
			c.Squares = append(c.Squares, s)
		}
		d.Columns = append(d.Columns, c)
		d.Text += fmt.Sprintf("; %s: %s %s", part.Name, c.Counted, part.Phase)
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
func squaresOf(part *describe.Unit) []square {
	named := leaves(part)
	rest := max(0, part.Total-len(named))
	done := min(rest, part.Done)
	var squares []square
	for range done {
		squares = append(squares, square{Phase: rollout.PhaseComplete, Title: "complete"})
	}
	for _, u := range named {
		s := square{Phase: u.Phase, Title: u.Name + ": " + string(u.Phase)}
		if u.Sentence != "" {
			s.Title = u.Name + ": " + u.Sentence
		}
		s.Path = pathOf("why", u.Ref)
		squares = append(squares, s)
	}
	for range rest - done {
		squares = append(squares, square{Title: "not reached yet"})
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

func amount(u *describe.Unit) string {
	if u.Total == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d %s", u.Done, u.Total, u.Counted)
}
