package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/rollout"
)

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
