package dashboard

import (
	"time"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/simulate/forecast"
)

// Sizes of the time line, in pixels.
const (
	timelineWidth, timelineRow = 900, 14
	timelineRows               = 60
)

// timeline draws when each step begins, with the earliest and the latest time, and says what
// the text says; nil of a rollout that does not end or is over already.
func timeline(now time.Time, c *forecast.Course, text string) *drawing {
	if c == nil || c.Ends == nil || len(c.Steps) == 0 || !c.Ends.Latest.After(now) {
		return nil
	}
	steps := c.Steps[:min(timelineRows, len(c.Steps))]
	whole := c.Ends.Latest.Sub(now)
	x := func(t time.Time) int { return int(timelineWidth * max(0, t.Sub(now)) / whole) }
	d := &drawing{Width: timelineWidth + 3, Height: (len(steps) + 1) * timelineRow, Text: text}
	bar := func(y int, r describe.Range, is, title string) {
		d.Shapes = append(d.Shapes, shape{X: x(r.Earliest), Y: y, Width: max(3, x(r.Latest)-x(r.Earliest)), Height: timelineRow - 8, Is: is, Text: title})
	}
	for i := range steps {
		when, y := steps[i].When, i*timelineRow
		bar(y+4, when, isRange, steps[i].String()+": "+describe.In(now, when))
		d.Shapes = append(d.Shapes, shape{X: x(when.Expected), Y: y + 1, Width: 3, Height: timelineRow - 2, Is: isExpected})
	}
	bar(d.Height-timelineRow+4, *c.Ends, isEnd, text)
	return d.finish()
}
