package dashboard

import (
	"fmt"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/rollout"
)

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
