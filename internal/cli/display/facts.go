package display

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
)

// Facts are lines in columns. The last column of each is text: on a terminal it is
// folded where it does not fit, so that it stays a column.
type Facts struct {
	out     io.Writer
	style   Style
	laid    bytes.Buffer
	columns *tabwriter.Writer
}

// NewFacts returns columns that are written to w.
func NewFacts(w io.Writer, s Style) *Facts {
	f := &Facts{out: w, style: s}
	f.columns = tabwriter.NewWriter(&f.laid, 0, 0, 2, ' ', 0)
	return f
}

// beforeText stands before the last column until it is known how wide the others are.
// What others have written does not have it, see [plain].
const beforeText = "\x1f"

// row adds a line that begins with the name of a fact.
func (f *Facts) row(name string, columns ...string) {
	f.Line(append([]string{"  " + name}, columns...)...)
}

// Line adds a line.
func (f *Facts) Line(columns ...string) {
	last := len(columns) - 1
	for i, column := range columns[:last] {
		columns[i] = strings.ReplaceAll(column, "\t", " ")
	}
	columns[last] = beforeText + Plain(columns[last])
	_, _ = fmt.Fprintln(f.columns, strings.Join(columns, "\t"))
}

// Write writes all lines.
func (f *Facts) Write() {
	_ = f.columns.Flush() // to memory
	for line := range strings.Lines(f.laid.String()) {
		lead, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), beforeText)
		_, _ = fmt.Fprintln(f.out, strings.TrimRight(f.beside(lead, text), " "))
	}
}

// beside puts the text after what leads to it, or below where little room is left.
func (f *Facts) beside(lead, text string) string {
	width := ansi.StringWidth(lead)
	room := f.style.Width - width
	if f.style.Width == 0 || room >= minimalRoom || ansi.StringWidth(text) <= room {
		return lead + f.style.Fold(text, width)
	}
	return strings.TrimRight(lead, " ") + "\n" + strings.Repeat(" ", beneath) + f.style.Fold(text, beneath)
}

// Modules writes a line for each module.
func Modules(w io.Writer, s Style, found []decision.Explanation) {
	if len(found) == 0 {
		return
	}
	f := NewFacts(w, s)
	f.Line("NAMESPACE", "MODULE", "PHASE", "STAGE", "CLUSTERS", "FAILED", "TARGET", "WHY")
	for i := range found {
		e := &found[i]
		failed := int32(0)
		if e.Summary != nil {
			failed = e.Summary.Failed
		}
		f.Line(e.Namespace, strings.ToLower(e.Kind)+"/"+e.Name, e.Phase, e.Stage, e.UpToDate, strconv.Itoa(int(failed)), e.Target, e.Sentence)
	}
	f.Write()
}

func timeText(t *time.Time) string {
	if t == nil {
		return ""
	}
	return describe.Moment(*t)
}

// elapsed is the time until now in whole seconds, if there is no end yet.
func elapsed(from time.Time, to *time.Time, now time.Time) string {
	if to != nil {
		return to.Sub(from).Round(100 * time.Millisecond).String()
	}
	return max(now.Sub(from), 0).Truncate(time.Second).String()
}
