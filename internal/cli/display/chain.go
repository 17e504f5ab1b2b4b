package display

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain"
	"github.com/spillway-dev/spillway/internal/plans"
	"github.com/spillway-dev/spillway/internal/reasons"
)

const (
	// lineWidth is how wide the lines of a chain are at most.
	lineWidth = 80
	// deepest is how far the lines of a chain are indented at most.
	deepest = 20
)

// Chain writes one sentence, why it is so down to the root, the facts, and what
// comes next.
func Chain(w io.Writer, s Style, chain *explain.Chain, now time.Time) {
	_, _ = fmt.Fprintln(w, s.Paint(Bold, s.Fold(Plain(chain.Links[0].Sentence)+".", 0)))
	writeBecauses(w, chain.Links)
	if chain.Details != nil || len(chain.Facts) > 0 {
		_, _ = fmt.Fprintln(w)
	}
	f := NewFacts(w, s)
	addFacts(f, chain, now)
	f.Write()
	writeOutlook(w, s, chain)
}

// writeBecauses writes the links beneath the first, each deeper than the one that waits
// for it. What a sentence above has said is not said again.
func writeBecauses(w io.Writer, links []explain.Link) {
	said := []string{links[0].Sentence}
	for i := range links {
		if slices.ContainsFunc(said, func(above string) bool { return strings.Contains(above, links[i].Sentence) }) {
			continue
		}
		if len(said) == 1 {
			_, _ = fmt.Fprintln(w)
		}
		writeBecause(w, &links[i], len(said))
		said = append(said, links[i].Sentence)
	}
}

func writeBecause(w io.Writer, link *explain.Link, depth int) {
	indent := strings.Repeat(" ", min(2*depth, deepest))
	for i, line := range Wrap("because "+namely(link), lineWidth-len(indent)-2) {
		if i > 0 {
			line = "  " + line
		}
		_, _ = fmt.Fprintln(w, indent+line)
	}
}

// namely is the sentence of a link, with the object if the sentence does not name it.
func namely(link *explain.Link) string {
	if strings.Contains(link.Sentence, link.Name) {
		return link.Sentence
	}
	return link.Sentence + " (" + link.String() + ")"
}

// addFacts adds what else there is to know. A plan is shown as a tree, with how long its
// steps took.
func addFacts(f *Facts, chain *explain.Chain, now time.Time) {
	if e, isPlan := chain.Details.(plans.Explanation); isPlan {
		writeSteps(f, fewerSteps(&e), now, EveryPhase)
		return
	}
	for _, fact := range fewer(chain.Facts) {
		f.row(fact.Name, fact.Values...)
	}
}

// mostFacts is how many rows of facts are shown: with what stands above and below, an explanation fits on a
// screen of forty lines.
const mostFacts = 24

// fewer are as many facts as are shown. Of the names with the most rows the last rows are left out, and counted.
func fewer(facts []describe.Fact) []describe.Fact {
	if len(facts) <= mostFacts {
		return facts
	}
	rows := map[string]int{}
	for i := range facts {
		rows[facts[i].Name]++
	}
	shown := maps.Clone(rows)
	for left := len(facts); left > mostFacts; {
		most := slices.MaxFunc(slices.Sorted(maps.Keys(shown)), func(a, b string) int { return shown[a] - shown[b] })
		if shown[most] == 1 {
			break
		}
		if shown[most] == rows[most] { // one row more says how many are left out
			left++
		}
		shown[most]--
		left--
	}
	var few []describe.Fact
	seen := map[string]int{}
	for _, fact := range facts {
		seen[fact.Name]++
		switch n := seen[fact.Name]; {
		case n <= shown[fact.Name]:
			few = append(few, fact)
		case n == shown[fact.Name]+1:
			few = append(few, describe.FactOf(fact.Name, fmt.Sprintf("and %d more; -o json has all", rows[fact.Name]-shown[fact.Name])))
		}
	}
	return few
}

// fewerSteps is a plan with as many of its phases and steps as are shown: where there are too many, with those that are
// under way or have failed.
func fewerSteps(e *plans.Explanation) *plans.Explanation {
	rows := len(e.Phases)
	for i := range e.Phases {
		rows += len(e.Phases[i].Steps)
	}
	if rows <= mostFacts {
		return e
	}
	few, most := *e, mostFacts
	few.Phases = nil
	for _, phase := range e.Phases {
		isTelling := func(s v1beta1.ExecutionStatus) bool {
			return s.IsRunning() && s != v1beta1.Pending || s == v1beta1.FatalError
		}
		if most <= 0 || !isTelling(phase.Status) {
			continue
		}
		phase.Steps = slices.DeleteFunc(slices.Clone(phase.Steps), func(s v1beta1.StepStatus) bool { return !isTelling(s.Status) })
		phase.Steps = phase.Steps[:min(len(phase.Steps), most-1)]
		most -= 1 + len(phase.Steps)
		few.Phases = append(few.Phases, phase)
	}
	few.Cause += fmt.Sprintf("; %d of %d phases and steps, -o json has all", mostFacts-most, rows)
	return &few
}

// writeOutlook writes who has it in hand, since when and until when, and what to type:
// first what makes the file that the next command reads, if it reads one.
func writeOutlook(w io.Writer, s Style, chain *explain.Chain) {
	first, root := &chain.Links[0], chain.Root()
	var rows []describe.Fact
	text := func(name string, values ...string) {
		for _, value := range values {
			if value != "" {
				rows = append(rows, describe.FactOf(name, value))
				return
			}
		}
	}
	text("owner", root.Owner, first.Owner)
	text("since", timeText(first.Since), timeText(root.Since))
	text("until", timeText(root.Until), timeText(first.Until))
	text("deadline", timeText(chain.Deadline()))
	ends := root
	if root.Next == "" {
		ends = first
	}
	if ends.Next != "" {
		text(factFirst, ends.First)
		text(factNext, ends.Next)
	} else {
		_, action, _ := reasons.Of(root.Reason)
		text(factAction, action)
	}
	if len(rows) == 0 {
		return
	}
	_, _ = fmt.Fprintln(w)
	longest := 0
	for _, row := range rows {
		longest = max(longest, len(row.Name))
	}
	for _, row := range rows {
		writeOutlookRow(w, s, fmt.Sprintf("  %-*s  ", longest, row.Name), row)
	}
}

// writeOutlookRow writes a row; what is to be typed stays in one line, to be copied.
func writeOutlookRow(w io.Writer, s Style, lead string, row describe.Fact) {
	switch row.Name {
	case factFirst, factNext:
		_, _ = fmt.Fprintln(w, lead+s.Paint(cyan, row.Values[0]))
	case factAction:
		WriteHanging(w, lead, row.Values[0])
	default:
		_, _ = fmt.Fprintln(w, lead+row.Values[0])
	}
}

// The names of the rows that say what is to be done.
const (
	factFirst  = "first"
	factNext   = "next"
	factAction = "action"
)
