package forecast

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/simulate/forecast"
)

// write shows the answer to people.
func (f *forecaster) write(w io.Writer, a *forecast.Answer, object string) {
	if len(a.Rollouts) == 0 && (a.If == nil || len(a.If.Rollouts) == 0) {
		if object != "" {
			_, _ = fmt.Fprintf(w, "%s: no rollout is under way\n", object)
			return
		}
		_, _ = fmt.Fprintln(w, "no rollout is under way")
		return
	}
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if a.If != nil {
		_, _ = fmt.Fprintf(columns, "\tas it is\tif %s\n", strings.Join(a.If.Suppositions, " and "))
	}
	for _, pair := range pairs(a) {
		pair.write(columns, a, f.all)
	}
	_ = columns.Flush() // as with what is written to the terminal otherwise
	for _, pair := range pairs(a) {
		pair.writeWaits(w, a)
	}
}

// pair is a rollout as it is, and as it would be; either may be nil.
type pair struct{ plain, other *forecast.Course }

// pairs are the rollouts, those first that are under way.
func pairs(a *forecast.Answer) []pair {
	var all []pair
	find := func(courses []forecast.Course, c *forecast.Course) *forecast.Course {
		i := slices.IndexFunc(courses, func(o forecast.Course) bool {
			return o.Ring == c.Ring && o.Namespace == c.Namespace && o.Object == c.Object
		})
		if i < 0 {
			return nil
		}
		return &courses[i]
	}
	var others []forecast.Course
	if a.If != nil {
		others = a.If.Rollouts
	}
	for i := range a.Rollouts {
		c := &a.Rollouts[i]
		all = append(all, pair{c, find(others, c)})
	}
	for i := range others {
		if c := &others[i]; find(a.Rollouts, c) == nil {
			all = append(all, pair{nil, c})
		}
	}
	return all
}

func (p pair) any() *forecast.Course {
	if p.plain != nil {
		return p.plain
	}
	return p.other
}

// write writes the end of a rollout, and its steps below.
func (p pair) write(w io.Writer, a *forecast.Answer, placed bool) {
	name := p.any().Object
	if placed {
		name = p.any().Namespace + " " + name
	}
	line := name + " ends\t" + endText(p.plain, a.At)
	if a.If != nil {
		line += "\t" + endText(p.other, a.At)
	}
	_, _ = fmt.Fprintln(w, line)
	plain, other := whenOf(p.plain), whenOf(p.other)
	for i, o := range p.occurrences() {
		line := fmt.Sprintf("%4d. %s\t%s", i+1, o.text, whenText(plain, o, a.At))
		if a.If != nil {
			line += "\t" + whenText(other, o, a.At)
		}
		_, _ = fmt.Fprintln(w, line)
	}
}

// occurrence is the n-th step with a text.
type occurrence struct {
	text string
	n    int
}

// each yields the steps of a rollout, without its name.
func each(c *forecast.Course) iter.Seq2[occurrence, *forecast.Coming] {
	return func(yield func(occurrence, *forecast.Coming) bool) {
		if c == nil {
			return
		}
		count := map[string]int{}
		for i := range c.Steps {
			text := strings.TrimPrefix(c.Steps[i].String(), c.Object+" ")
			if !yield(occurrence{text, count[text]}, &c.Steps[i]) {
				return
			}
			count[text]++
		}
	}
}

// occurrences are the steps as they are, and then those that are taken only otherwise.
func (p pair) occurrences() []occurrence {
	var all []occurrence
	known := map[occurrence]bool{}
	for _, c := range []*forecast.Course{p.plain, p.other} {
		for o := range each(c) {
			if !known[o] {
				known[o] = true
				all = append(all, o)
			}
		}
	}
	return all
}

// whenOf is when each step of a rollout begins.
func whenOf(c *forecast.Course) map[occurrence]describe.Range {
	when := map[occurrence]describe.Range{}
	for o, step := range each(c) {
		when[o] = step.When
	}
	return when
}

func endText(c *forecast.Course, now time.Time) string {
	switch {
	case c == nil:
		return "-"
	case c.Ends == nil:
		return "it waits"
	default:
		return describe.In(now, *c.Ends)
	}
}

// whenText is when a step begins, a dash if it is not taken.
func whenText(when map[occurrence]describe.Range, o occurrence, now time.Time) string {
	if r, taken := when[o]; taken {
		return describe.In(now, r)
	}
	return "-"
}

// writeWaits says why a rollout does not end, and which unit decides when it does.
func (p pair) writeWaits(w io.Writer, a *forecast.Answer) {
	say := func(c *forecast.Course, as string) {
		switch {
		case c == nil:
		case c.Waits != nil:
			_, _ = fmt.Fprintf(w, "%s%s waits: %s\n", as, c.Object, c.Waits.Sentence)
		case c.Decides != "":
			_, _ = fmt.Fprintf(w, "%s%s decides when %s ends\n", as, c.Decides[strings.LastIndex(c.Decides, "/")+1:], c.Object)
		}
	}
	say(p.plain, "")
	if a.If != nil {
		say(p.other, "if "+strings.Join(a.If.Suppositions, " and ")+": ")
	}
}
