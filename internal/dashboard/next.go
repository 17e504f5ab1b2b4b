package dashboard

import (
	"net/http"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/simulate/forecast"
	"github.com/spillway-dev/spillway/internal/simulate/record"
)

// nextView is what comes next.
type nextView struct {
	forecast.Answer

	Object, Namespace string
	Ifs               []string
	Suppositions      []string
}

// next is the page of the forecast.
func (p *viewer) next(r *http.Request) (*view, error) {
	query := r.URL.Query()
	v := nextView{Object: query.Get("object"), Namespace: query.Get("namespace"), Suppositions: forecast.Suppositions()}
	namespace, object := v.Namespace, ""
	if namespace == "" {
		namespace = p.Namespace
	}
	if v.Object != "" {
		ref, err := p.Named(namespace, v.Object)
		if err != nil {
			return nil, requestError{err}
		}
		object = record.Reference(ref.Kind, ref.Name)
	}
	var ifs []forecast.Supposition
	for _, text := range query["if"] {
		if text == "" { // a field that was left empty
			continue
		}
		s, err := forecast.ParseSupposition(text)
		if err != nil {
			return nil, requestError{err}
		}
		ifs, v.Ifs = append(ifs, s), append(v.Ifs, text)
	}
	select {
	case p.foreseeing <- struct{}{}:
		defer func() { <-p.foreseeing }()
	default:
		return nil, errBusy
	}
	answer, err := p.Forecast(r.Context(), namespace, object, ifs)
	if err != nil {
		return nil, err
	}
	v.Answer = answer
	missing := p.NoManager(r.Context(), len(answer.Rollouts) > 0)
	return &view{file: "next", Title: "Next", NoManager: missing, value: answer, Of: &v}, nil
}

// All says when all of it has ended, empty of one rollout.
func (v *nextView) All() string {
	if len(v.Rollouts) < 2 { //nolint:mnd // one says so itself
		return ""
	}
	if all := forecast.AllEnd(v.Rollouts); all != nil {
		return "All of this ends " + describe.In(v.At, *all) + "."
	}
	return "Not all of this ends automatically."
}

// Line draws when each rollout ends.
func (v *nextView) Line() *drawing { return timelines(v.At, v.Rollouts) }

// Command is the one that says the same.
func (v *nextView) Command() string {
	words := []string{"spillway", "forecast"}
	if v.Object != "" {
		words = append(words, v.Object)
	}
	if v.Namespace != "" {
		words = append(words, "-n", v.Namespace)
	}
	for _, text := range v.Ifs {
		words = append(words, "--if", text)
	}
	return strings.Join(words, " ")
}

// course is how one rollout goes on.
type course struct {
	Text    string
	Drawing *drawing
}

func courseOf(now time.Time, c *forecast.Course, prefix string) course {
	text := prefix + ends(now, c)
	return course{text, timeline(now, c, c.Object+": "+text)}
}

// begins is when a step begins, a dash if it is not taken.
func begins(now time.Time, when *describe.Range) string {
	if when == nil {
		return "-"
	}
	return describe.In(now, *when)
}

// ends says when a rollout ends, or why it does not.
func ends(now time.Time, c *forecast.Course) string {
	switch {
	case c.Waits != nil:
		return "It waits: " + c.Waits.Sentence
	case c.Ends == nil:
		return "It waits."
	case c.Decides != "":
		return "It ends " + describe.In(now, *c.Ends) + "; " + c.Decides[strings.LastIndex(c.Decides, "/")+1:] + " decides when."
	default:
		return "It ends " + describe.In(now, *c.Ends) + "."
	}
}

// Sizes of the time line, in pixels.
const (
	timelineWidth, timelineRow = 900, 14
	timelineRows               = 60
)

// Sizes of the time line of several rollouts: the height of one, and how many parts its axis has.
const courseRow, axisParts = 30, 4

// axis is the time from now on that a time line shows.
type axis struct {
	now   time.Time
	whole time.Duration
}

// at is where a time is, in pixels.
func (a axis) at(t time.Time) int { return int(timelineWidth * max(0, t.Sub(a.now)) / a.whole) }

// bar is from the earliest to the latest time.
func (a axis) bar(y int, r describe.Range, is, title string) shape {
	return shape{X: a.at(r.Earliest), Y: y, Width: max(3, a.at(r.Latest)-a.at(r.Earliest)), Height: timelineRow - 8, Is: is, Text: title}
}

// timelines draws when each of several rollouts ends, on one axis; nil if that is not known of two of them.
func timelines(now time.Time, courses []forecast.Course) *drawing {
	var known []*forecast.Course
	last := now
	for i := range courses {
		if c := &courses[i]; c.Ends != nil && c.Ends.Latest.After(now) && len(known) < timelineRows {
			known, last = append(known, c), ring.Later(last, c.Ends.Latest)
		}
	}
	if len(known) < 2 { //nolint:mnd // each has a time line of its own
		return nil
	}
	a := axis{now, last.Sub(now)}
	d := &drawing{Width: drawingWidth, Height: (len(known) + 1) * courseRow, Text: "when each rollout ends"}
	for i, c := range known {
		d.name(0, i*courseRow+timelineRow-2, isName, c.Object)
		d.Shapes = append(d.Shapes, a.bar(i*courseRow+timelineRow+2, *c.Ends, isEnd, c.Object+": "+ends(now, c)))
	}
	y := len(known) * courseRow
	d.line(0, y, timelineWidth, 1)
	for part := range axisParts + 1 {
		at := timelineWidth * part / axisParts
		d.line(at, y, 1, timelineRow/2)
		d.name(at, y+2*timelineRow-4, isAmount, "in "+(a.whole*time.Duration(part)/axisParts).Round(time.Second).String())
	}
	return d.finish()
}

// timeline draws when each step begins, with the earliest and the latest time, and says what
// the text says; nil of a rollout that does not end or is over already.
func timeline(now time.Time, c *forecast.Course, text string) *drawing {
	if c == nil || c.Ends == nil || len(c.Steps) == 0 || !c.Ends.Latest.After(now) {
		return nil
	}
	steps := c.Steps[:min(timelineRows, len(c.Steps))]
	a := axis{now, c.Ends.Latest.Sub(now)}
	d := &drawing{Width: timelineWidth + 3, Height: (len(steps) + 1) * timelineRow, Text: text}
	for i := range steps {
		when, y := steps[i].When, i*timelineRow
		d.Shapes = append(d.Shapes, a.bar(y+4, when, isRange, steps[i].String()+": "+describe.In(now, when)),
			shape{X: a.at(when.Expected), Y: y + 1, Width: 3, Height: timelineRow - 2, Is: isExpected})
	}
	d.Shapes = append(d.Shapes, a.bar(d.Height-timelineRow+4, *c.Ends, isEnd, text))
	return d.finish()
}
