package display

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/rollout"
)

const (
	// shownAlike is how many siblings of the same phase a tree shows before it counts
	// the others.
	shownAlike = 10
	// shownSame is how many are shown of those that wait for the same; of more than that one is shown for all.
	shownSame = 3
	// barWidth is that of a bar of progress.
	barWidth = 10
	// roomForSentence is what a sentence needs beside the columns; with less it stands
	// beneath them.
	roomForSentence = 40
	// shortestName is how many columns names have at least, however narrow it is.
	shortestName = 12
	// longestName is how many they have at most where there is no terminal: a longer name moves its own
	// line, and not all others.
	longestName = 48
	// beneath is how far a sentence is indented that stands beneath its unit.
	beneath = 8
)

// Tree draws units as lines.
type Tree struct {
	Now time.Time
	// Style is that of the terminal. Where there is none nothing is wrapped, so that a
	// line can be found by what is in it.
	Style Style
	// Whole leaves nothing out.
	Whole bool
	// Namespaces shows them.
	Namespaces bool
}

// Row is a line of the tree before it is known how wide the columns are.
type Row struct {
	Name, Phase, Progress, Since, sentence string
}

// Lines draws the units, one line each, or more where a sentence is wrapped.
func (t *Tree) Lines(units []describe.Unit) []string {
	rows := t.rows(nil, units, "", "", "")
	widths := Columns(rows)
	if t.Style.Width > 0 {
		widths.Name = max(min(widths.Name, t.Style.Width-widths.others()), shortestName)
	} else {
		widths.Name = min(widths.Name, longestName)
	}
	var lines []string
	for i := range rows {
		lines = append(lines, t.lay(&rows[i], widths)...)
	}
	return lines
}

type shownUnit struct {
	unit *describe.Unit
	more string
}

// ColumnWidths are those of the columns before the sentence.
type ColumnWidths struct{ Name, Phase, Progress, Since int }

// Columns returns how wide the columns of the rows are.
func Columns(rows []Row) ColumnWidths {
	var w ColumnWidths
	for i := range rows {
		r := &rows[i]
		if r.Phase == "" {
			continue // it counts what is left out, and has the line to itself
		}
		w.Name, w.Phase = max(w.Name, utf8.RuneCountInString(r.Name)), max(w.Phase, len(r.Phase))
		w.Progress, w.Since = max(w.Progress, utf8.RuneCountInString(r.Progress)), max(w.Since, len(r.Since))
	}
	return w
}

// rows draws siblings: prefix stands before what is beneath them, and said is the
// sentence of the unit above, which is not said again.
func (t *Tree) rows(rows []Row, units []describe.Unit, prefix, namespace, said string) []Row {
	folded, top := t.fold(units), namespace == ""
	for i := range folded {
		u, branch, trunk := folded[i].unit, "├─ ", "│  "
		if i == len(folded)-1 {
			branch, trunk = "└─ ", "   "
		}
		if top {
			branch, trunk = "", ""
		}
		if u == nil {
			rows = append(rows, Row{Name: prefix + branch + folded[i].more})
			continue
		}
		r := t.row(u, said)
		r.Name = prefix + branch + r.Name
		rows = append(rows, r)
		if !u.IsComplete() || t.Whole {
			rows = t.rows(rows, u.Units, prefix+trunk, inNamespace(u, namespace), Plain(u.Sentence))
		}
	}
	return rows
}

// inNamespace is the namespace of what is beneath a unit; not empty.
func inNamespace(u *describe.Unit, namespace string) string {
	if u.Namespace != "" {
		return u.Namespace
	}
	if namespace != "" {
		return namespace
	}
	return "cluster"
}

func (t *Tree) row(u *describe.Unit, said string) Row {
	r := Row{Name: Name(u), Phase: string(u.Phase), Progress: progress(u), sentence: Plain(u.Sentence)}
	if t.Namespaces && u.Namespace != "" {
		r.Name = u.Namespace + "/" + r.Name
	}
	if !u.IsComplete() {
		r.Since = describe.Age(t.Now, u.Since)
	}
	if r.sentence == said || u.IsComplete() && !t.Whole && !u.Paused {
		r.sentence = ""
	}
	r.sentence = WithEnd(r.sentence, u, t.Now)
	return r
}

// WithEnd adds to a sentence when a unit ends, if that is known. What has not ended when it
// should have says no more.
func WithEnd(sentence string, u *describe.Unit, now time.Time) string {
	if in := u.EndsIn(now); in != "" {
		return strings.TrimPrefix(sentence+"; ends "+in, "; ")
	}
	return sentence
}

// progress is a bar and the numbers, empty where nothing is counted.
func progress(u *describe.Unit) string {
	if u.Total == 0 {
		return ""
	}
	full := barWidth * min(u.Done, u.Total) / u.Total
	return fmt.Sprintf("%s%s %d/%d", strings.Repeat("█", full), strings.Repeat("░", barWidth-full), u.Done, u.Total)
}

// fold counts what would make the tree long: units that wait for the same, or do as others beside them do.
func (t *Tree) fold(units []describe.Unit) []shownUnit {
	same, alike, last := map[likeness]int{}, map[likeness]int{}, map[likeness]int{}
	for i := range units {
		same[likenessOf(&units[i])]++
	}
	var shown []shownUnit
	for i := range units {
		u := &units[i]
		is := likenessOf(u)
		kind, n := is.coarse(), same[is]
		if n == 0 { // the first was shown for it
			continue
		}
		if alike[kind]++; !t.Whole && alike[kind] > shownAlike {
			continue
		}
		shown = append(shown, shownUnit{unit: u})
		if !t.Whole && is != kind && n > shownSame {
			same[is] = 0
			shown = append(shown, shownUnit{more: fmt.Sprintf("... and %d more, for the same reason: %s", n-1, pausedPhase(u))})
		}
		last[kind] = len(shown)
	}
	if t.Whole {
		return shown
	}
	return countMore(shown, alike, last)
}

// countMore adds, after the last that is shown of its kind, how many are not.
func countMore(shown []shownUnit, alike, last map[likeness]int) []shownUnit {
	var with []shownUnit
	for i := range shown {
		with = append(with, shown[i])
		for kind, at := range last {
			if more := alike[kind] - shownAlike; more > 0 && at == i+1 {
				with = append(with, shownUnit{more: fmt.Sprintf("... and %d more: %s", more, kind.phase)})
			}
		}
	}
	return with
}

// pausedPhase is the phase of units, and that they are paused if it does not say so.
func pausedPhase(u *describe.Unit) string {
	if u.Paused {
		return string(u.Phase) + ", paused"
	}
	return string(u.Phase)
}

// likeness is what units have in common of which a few are shown for all.
type likeness struct {
	kind, phase string
	reason      rollout.Reason
	why         rollout.Cause
}

func likenessOf(u *describe.Unit) likeness {
	return likeness{u.Kind, pausedPhase(u), u.Reason, u.Why}
}

// coarse is the likeness whatever they wait for.
func (l likeness) coarse() likeness {
	l.why = rollout.Cause{}
	return l
}

// lay puts a row into its columns, and the sentence beside or beneath them.
func (t *Tree) lay(r *Row, w ColumnWidths) []string {
	if r.Phase == "" {
		return []string{r.Name}
	}
	name := r.Name
	if t.Style.Width > 0 {
		name = Cut(name, w.Name)
	}
	texts := []string{Pad(name, w.Name), t.Style.Word(r.Phase) + Pad("", w.Phase-len(r.Phase))}
	for _, c := range []struct {
		text  string
		width int
	}{{r.Progress, w.Progress}, {r.Since, w.Since}} {
		if c.width > 0 {
			texts = append(texts, Pad(c.text, c.width))
		}
	}
	return t.say(r.sentence, strings.Join(texts, Gap), w.Name+w.others()+len(Gap))
}

// Name is how kubectl names an object, and the bare name of what is none.
func Name(u *describe.Unit) string {
	switch u.Kind {
	case "Zone", "Release", "Stage", "Step", "Cluster", "Pod":
		return u.Name
	case "Plan":
		return "plan " + u.Name
	default:
		return u.String()
	}
}

// others is what all columns but the names take.
func (w ColumnWidths) others() int {
	others := len(Gap) + w.Phase
	for _, width := range []int{w.Progress, w.Since} {
		if width > 0 {
			others += len(Gap) + width
		}
	}
	return others
}

// Gap is between columns.
const Gap = "  "

// say puts the sentence beside a line of so many columns, or beneath it.
func (t *Tree) say(sentence, line string, used int) []string {
	room := t.Style.Width - used
	switch {
	case sentence == "":
		return []string{strings.TrimRight(line, " ")}
	case t.Style.Width == 0:
		return []string{line + Gap + sentence}
	case room >= roomForSentence:
		return hanging(line+Gap, Wrap(sentence, room), used)
	default:
		return hanging(strings.TrimRight(line, " "), append([]string{""}, Wrap(sentence, max(t.Style.Width-beneath, 1))...), beneath)
	}
}

// hanging puts the first line after what leads to it, and the others below, indented.
func hanging(lead string, lines []string, indent int) []string {
	hung := []string{lead + lines[0]}
	for _, line := range lines[1:] {
		hung = append(hung, strings.Repeat(" ", indent)+line)
	}
	return hung
}

// Pad adds blanks up to a width.
func Pad(text string, width int) string {
	return text + strings.Repeat(" ", max(width-utf8.RuneCountInString(text), 0))
}
