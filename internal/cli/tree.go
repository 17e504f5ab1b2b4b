package cli

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spillway-dev/spillway/internal/describe"
)

const (
	// shownAlike is how many siblings of the same phase a tree shows before it counts
	// the others.
	shownAlike = 10
	// barWidth is that of a bar of progress.
	barWidth = 10
	// roomForSentence is what a sentence needs beside the columns; with less it stands
	// beneath them.
	roomForSentence = 40
	// shortestName is how many columns names have at least, however narrow it is.
	shortestName = 12
	// beneath is how far a sentence is indented that stands beneath its unit.
	beneath = 8
)

// tree draws units as lines.
type tree struct {
	now time.Time
	// style is that of the terminal. Where there is none nothing is wrapped, so that a
	// line can be found by what is in it.
	style style
	// whole leaves nothing out.
	whole bool
	// namespaces shows them.
	namespaces bool
}

// row is a line of the tree before it is known how wide the columns are.
type row struct {
	name, phase, progress, since, sentence string
}

// lines draws the units, one line each, or more where a sentence is wrapped.
func (t *tree) lines(units []describe.Unit) []string {
	rows := t.rows(nil, units, "", "", "")
	widths := columns(rows)
	if t.style.width > 0 {
		widths.name = max(min(widths.name, t.style.width-widths.others()), shortestName)
	}
	var lines []string
	for i := range rows {
		lines = append(lines, t.lay(&rows[i], widths)...)
	}
	return lines
}

// rows draws siblings: prefix stands before what is beneath them, and said is the
// sentence of the unit above, which is not said again.
func (t *tree) rows(rows []row, units []describe.Unit, prefix, namespace, said string) []row {
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
			rows = append(rows, row{name: prefix + branch + folded[i].more})
			continue
		}
		r := t.row(u, said)
		r.name = prefix + branch + r.name
		rows = append(rows, r)
		if !u.IsComplete() || t.whole {
			rows = t.rows(rows, u.Units, prefix+trunk, inNamespace(u, namespace), plain(u.Sentence))
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

// row is that of one unit.
func (t *tree) row(u *describe.Unit, said string) row {
	r := row{name: nameIn(u), phase: string(u.Phase), progress: progress(u), sentence: plain(u.Sentence)}
	if t.namespaces && u.Namespace != "" {
		r.name = u.Namespace + "/" + r.name
	}
	if !u.IsComplete() {
		r.since = age(t.now, u.Since)
	}
	if r.sentence == said || u.IsComplete() && !t.whole {
		r.sentence = ""
	}
	return r
}

// nameIn is how kubectl names an object, and the bare name of what is none.
func nameIn(u *describe.Unit) string {
	switch u.Kind {
	case "Zone", "Stage", "Step", "Cluster", "Pod":
		return u.Name
	case "Plan":
		return "plan " + u.Name
	default:
		return u.String()
	}
}

// progress is a bar and the numbers, empty where nothing is counted.
func progress(u *describe.Unit) string {
	if u.Total == 0 {
		return ""
	}
	full := barWidth * min(u.Done, u.Total) / u.Total
	return fmt.Sprintf("%s%s %d/%d", strings.Repeat("█", full), strings.Repeat("░", barWidth-full), u.Done, u.Total)
}

// shownUnit is a unit that is shown, or how many more there are.
type shownUnit struct {
	unit *describe.Unit
	more string
}

// fold counts what would make the tree long: units that do as others beside them do.
func (t *tree) fold(units []describe.Unit) []shownUnit {
	var shown []shownUnit
	seen, last := map[string]int{}, map[string]int{}
	for i := range units {
		kind := alike(&units[i])
		if seen[kind]++; t.whole || seen[kind] <= shownAlike {
			shown, last[kind] = append(shown, shownUnit{unit: &units[i]}), len(shown)
		}
	}
	return t.countMore(shown, seen, last)
}

// countMore adds, after the last that is shown of its like, how many are not.
func (t *tree) countMore(shown []shownUnit, seen, last map[string]int) []shownUnit {
	if t.whole {
		return shown
	}
	var with []shownUnit
	for i := range shown {
		with = append(with, shown[i])
		kind := alike(shown[i].unit)
		if more := seen[kind] - shownAlike; more > 0 && last[kind] == i {
			with = append(with, shownUnit{more: fmt.Sprintf("... and %d more: %s", more, shown[i].unit.Phase)})
		}
	}
	return with
}

// alike is what units have in common of which a few are shown for all.
func alike(u *describe.Unit) string { return u.Kind + " " + string(u.Phase) + " " + string(u.Reason) }

// columnWidths are those of the columns before the sentence.
type columnWidths struct{ name, phase, progress, since int }

// others is what all columns but the names take.
func (w columnWidths) others() int {
	others := len(gap) + w.phase
	for _, width := range []int{w.progress, w.since} {
		if width > 0 {
			others += len(gap) + width
		}
	}
	return others
}

func columns(rows []row) columnWidths {
	var w columnWidths
	for i := range rows {
		r := &rows[i]
		if r.phase == "" {
			continue // it counts what is left out, and has the line to itself
		}
		w.name, w.phase = max(w.name, utf8.RuneCountInString(r.name)), max(w.phase, len(r.phase))
		w.progress, w.since = max(w.progress, utf8.RuneCountInString(r.progress)), max(w.since, len(r.since))
	}
	return w
}

// lay puts a row into its columns, and the sentence beside or beneath them.
func (t *tree) lay(r *row, w columnWidths) []string {
	if r.phase == "" {
		return []string{r.name}
	}
	texts := []string{pad(cut(r.name, w.name), w.name), t.style.word(r.phase) + pad("", w.phase-len(r.phase))}
	for _, c := range []struct {
		text  string
		width int
	}{{r.progress, w.progress}, {r.since, w.since}} {
		if c.width > 0 {
			texts = append(texts, pad(c.text, c.width))
		}
	}
	return t.say(r.sentence, strings.Join(texts, gap), w.name+w.others()+len(gap))
}

// gap is between columns.
const gap = "  "

// say puts the sentence beside a line of so many columns, or beneath it.
func (t *tree) say(sentence, line string, used int) []string {
	room := t.style.width - used
	switch {
	case sentence == "":
		return []string{strings.TrimRight(line, " ")}
	case t.style.width == 0:
		return []string{line + gap + sentence}
	case room >= roomForSentence:
		return hanging(line+gap, wrap(sentence, room), used)
	default:
		return hanging(strings.TrimRight(line, " "), append([]string{""}, wrap(sentence, max(t.style.width-beneath, 1))...), beneath)
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

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(width-utf8.RuneCountInString(text), 0))
}
