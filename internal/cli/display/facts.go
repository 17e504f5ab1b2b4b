package display

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/history"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/plans"
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

// ShownEpisodes is how many rollouts history shows unless --event-ttl says otherwise, and
// shownStretches how many clusters of one; all are in the JSON.
const (
	ShownEpisodes  = 10
	shownStretches = 20
)

// History writes a paragraph for each episode.
func History(w io.Writer, s Style, ref describe.Ref, episodes []history.Entry, now time.Time) {
	if len(episodes) == 0 {
		_, _ = fmt.Fprintf(w, "No rollout of %s is recorded yet.\n", ref)
	}
	for i := range episodes {
		if i > 0 {
			_, _ = fmt.Fprintln(w)
		}
		writeEpisode(w, s, &episodes[i], now)
	}
}

// factColumn is where the facts of an episode begin.
const factColumn = 11

func writeEpisode(w io.Writer, s Style, e *history.Entry, now time.Time) {
	title := s.Paint(Bold, e.What)
	if e.Outcome != "" {
		title += "  " + s.Word(e.Outcome)
	}
	_, _ = fmt.Fprintln(w, title)
	for _, fact := range [][2]string{
		{"began", beganText(e, now)}, {"uid", e.UID}, {"to", e.To}, {"change", e.Change}, {"by", e.By}, {"message", e.Message}, {"undone", e.UndoneText()},
	} {
		if fact[1] != "" {
			_, _ = fmt.Fprintf(w, "  %-*s%s\n", factColumn-2, fact[0], s.Fold(Plain(fact[1]), factColumn))
		}
	}
	writeStretches(w, s, e, now)
	for i := range e.Notes {
		writeNote(w, s, &e.Notes[i], e)
	}
}

// beganText says when an episode began, and how long it took if that is known.
func beganText(e *history.Entry, now time.Time) string {
	switch {
	case e.Started == nil:
		return "never, as far as is recorded"
	case e.Ended != nil:
		return describe.Moment(*e.Started) + ", took " + elapsed(*e.Started, e.Ended, now)
	case e.Outcome == "Running":
		return describe.Moment(*e.Started) + ", " + elapsed(*e.Started, nil, now) + " ago"
	default:
		return describe.Moment(*e.Started)
	}
}

func writeStretches(w io.Writer, s Style, e *history.Entry, now time.Time) {
	f := NewFacts(w, s)
	shown := min(len(e.Units), shownStretches)
	width := factColumn - 4
	for i := range shown {
		width = max(width, len(e.Units[i].Kind))
	}
	for i := range shown {
		u := &e.Units[i]
		addStretch(f, width, strings.ToLower(u.Kind), u, now)
		for j := range u.Units {
			addStretch(f, width, "  "+strings.ToLower(u.Units[j].Kind), &u.Units[j], now)
		}
	}
	f.Write()
	if more := len(e.Units) - shown; more > 0 {
		_, _ = fmt.Fprintln(w, s.Paint(Faint, fmt.Sprintf("  and %d more; -o json shows all", more)))
	}
}

func addStretch(f *Facts, width int, what string, u *history.Part, now time.Time) {
	took := ""
	switch {
	case u.Started == nil:
	case u.Ended != nil:
		took = elapsed(*u.Started, u.Ended, now)
	default:
		took = "since " + u.Started.UTC().Format(time.TimeOnly)
	}
	f.Line(fmt.Sprintf("  %-*s  %s", width, what, u.Name), u.Outcome, took, u.Message)
}

// hashes are SHA-256 as Kubernetes' and our own messages have it.
var hashes = regexp.MustCompile(`\b[0-9a-f]{64}\b`)

// EventText is what an Event says, fit for a terminal: what had changed where that is known, and
// no long hashes, of which ten characters are enough to tell them apart.
func EventText(n *history.Event) string {
	return Plain(hashes.ReplaceAllStringFunc(n.Said(), func(h string) string { return h[:10] }))
}

// writeNote writes an Event, with its object where that is another one.
func writeNote(w io.Writer, s Style, n *history.Event, of *history.Entry) {
	text := EventText(n)
	if n.About != of.Ref {
		text = n.About.String() + ": " + text
	}
	reason := n.Reason
	if n.Warning {
		reason = s.Paint(Red, reason)
	}
	at := n.At.UTC().Format(time.TimeOnly)
	indent := factColumn + len(n.Reason) + 2
	_, _ = fmt.Fprintf(w, "  %s %s  %s\n", s.Paint(Faint, at), reason, s.Fold(text, indent))
}

// Comparison writes two rollouts side by side; what differs is marked.
func Comparison(w io.Writer, c *history.Comparison) {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(columns, "\t\t%s\t%s\n", c.A.What, c.B.What)
	for _, r := range c.Rows {
		mark := " "
		if r.Differs {
			mark = "*"
		}
		_, _ = fmt.Fprintf(columns, "%s\t%s\t%s\t%s\n", mark, r.About, cmp.Or(Plain(r.A), "-"), cmp.Or(Plain(r.B), "-"))
	}
	_ = columns.Flush() // as with what is written to the terminal otherwise
}

// Plan writes one sentence, then the tree of phases and steps.
func Plan(w io.Writer, s Style, e plans.Explanation, now time.Time) {
	PlanTree(w, s, e, now, EveryPhase)
}

// EveryPhase unfolds all phases.
func EveryPhase(*v1beta1.PhaseStatus) bool { return true }

// PlanTree is writePlan, with the steps of those phases alone that are unfolded.
func PlanTree(w io.Writer, s Style, e plans.Explanation, now time.Time, unfolded func(*v1beta1.PhaseStatus) bool) {
	_, _ = fmt.Fprintf(w, "%s.\n\n", s.Fold(e.Sentence, 0))
	f := NewFacts(w, s)
	writeSteps(f, &e, now, unfolded)
	f.Write()
}

// writeSteps writes the tree alone.
func writeSteps(f *Facts, e *plans.Explanation, now time.Time, unfolded func(*v1beta1.PhaseStatus) bool) {
	if e.Plan == "" {
		f.Line("No plan has run yet.")
		return
	}
	u := describe.Instance(e)
	f.Line("plan "+e.Plan, string(e.Status), planTook(e, now), WithEnd(e.Cause, &u, now))
	for i := range e.Phases {
		phase := &e.Phases[i]
		f.Line("  phase "+phase.Name, string(phase.Status), phaseTook(phase, now), "")
		for j := range phase.Steps {
			if !unfolded(phase) {
				break
			}
			step := &phase.Steps[j]
			f.Line("    step "+step.Name, string(step.Status), StepTook(step, now), step.Message)
		}
	}
}

func planTook(e *plans.Explanation, now time.Time) string {
	if e.Started == nil {
		return ""
	}
	return elapsed(*e.Started, e.Ended, now)
}

// phaseTook is how long a phase took: until its last step was complete.
func phaseTook(p *v1beta1.PhaseStatus, now time.Time) string {
	if p.StartedAt == nil {
		return ""
	}
	if p.Status.IsRunning() {
		return elapsed(p.StartedAt.Time, nil, now)
	}
	var last *time.Time
	for i := range p.Steps {
		if at := p.Steps[i].FinishedAt; at != nil && (last == nil || last.Before(at.Time)) {
			last = &at.Time
		}
	}
	if last == nil || p.Status != v1beta1.Complete {
		return ""
	}
	return elapsed(p.StartedAt.Time, last, now)
}

// StepTook is how long a step took, or has taken so far; empty if that is not known.
func StepTook(s *v1beta1.StepStatus, now time.Time) string {
	switch {
	case s.StartedAt == nil:
		return ""
	case s.FinishedAt != nil:
		return elapsed(s.StartedAt.Time, &s.FinishedAt.Time, now)
	case s.Status.IsRunning():
		return elapsed(s.StartedAt.Time, nil, now)
	default:
		return ""
	}
}
