package forecast

import (
	"fmt"
	"io"
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
	pairs := a.Pairs()
	for _, p := range pairs {
		writeSteps(columns, p, a, f.all)
	}
	writeAllEnd(columns, a)
	_ = columns.Flush() // as with what is written to the terminal otherwise
	for _, p := range pairs {
		writeWaits(w, p, a)
	}
}

// writeAllEnd writes when the last of several rollouts ends.
func writeAllEnd(w io.Writer, a *forecast.Answer) {
	if len(a.Rollouts) < 2 { //nolint:mnd // one has said so itself
		return
	}
	line := "all of this ends\t" + endText(&forecast.Course{Ends: forecast.AllEnd(a.Rollouts)}, a.At)
	if a.If != nil {
		line += "\t" + endText(&forecast.Course{Ends: forecast.AllEnd(a.If.Rollouts)}, a.At)
	}
	_, _ = fmt.Fprintln(w, line)
}

// writeSteps writes the end of a rollout, and its steps below.
func writeSteps(w io.Writer, p forecast.Pair, a *forecast.Answer, placed bool) {
	name := p.Any().Object
	if placed {
		name = p.Any().Namespace + " " + name
	}
	line := name + " ends\t" + endText(p.Plain, a.At)
	if a.If != nil {
		line += "\t" + endText(p.Other, a.At)
	}
	_, _ = fmt.Fprintln(w, line)
	for i, row := range p.Rows() {
		line := fmt.Sprintf("%4d. %s\t%s", i+1, row.Text, whenText(row.Plain, a.At))
		if a.If != nil {
			line += "\t" + whenText(row.Other, a.At)
		}
		_, _ = fmt.Fprintln(w, line)
	}
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
func whenText(when *describe.Range, now time.Time) string {
	if when == nil {
		return "-"
	}
	return describe.In(now, *when)
}

// waits says why a rollout does not end. The sentence of a workload names it already.
func waits(c *forecast.Course) string {
	if c.Ring == describe.Config {
		return c.Waits.Sentence
	}
	return c.Object + ": " + c.Waits.Sentence
}

// writeWaits says why a rollout does not end, and which unit decides when it does.
func writeWaits(w io.Writer, p forecast.Pair, a *forecast.Answer) {
	say := func(c *forecast.Course, as string) {
		switch {
		case c == nil:
		case c.Waits != nil:
			_, _ = fmt.Fprintln(w, as+waits(c))
		case c.Decides != "":
			_, _ = fmt.Fprintf(w, "%s%s decides when %s ends\n", as, c.Decides[strings.LastIndex(c.Decides, "/")+1:], c.Object)
		}
	}
	say(p.Plain, "")
	if a.If != nil {
		say(p.Other, "if "+strings.Join(a.If.Suppositions, " and ")+": ")
	}
}
