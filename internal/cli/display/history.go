package display

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/history"
)

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

// writeStretches writes how long the parts took, in columns.
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
// no long hashes.
func EventText(n *history.Event) string { return Plain(withoutHashes(n.Said())) }

// withoutHashes leaves ten characters of the hashes in a text, enough to tell them apart.
func withoutHashes(text string) string {
	return hashes.ReplaceAllStringFunc(text, func(h string) string { return h[:10] })
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
