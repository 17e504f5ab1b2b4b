package watch

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/history"
)

const (
	// roomForBoth is how wide a terminal is at least on which tree and timeline stand
	// beside one another, and treeShare how many percent of it the tree has.
	roomForBoth = 72
	treeShare   = 60
	// frameLines are those of a frame besides the tree: title, sentence and keys.
	frameLines = 4
	reversed   = "7"
)

// View implements [tea.Model].
func (m *watchModel) View() tea.View {
	if m.ended || m.width == 0 {
		return tea.NewView("")
	}
	v := tea.NewView(strings.Join(m.frame(), "\n"))
	v.AltScreen = true
	return v
}

// frame is what is on the terminal, line by line, exactly as many as there are.
func (m *watchModel) frame() []string {
	room, branches := max(m.height-frameLines, 1), m.branches()
	lines := []string{m.header()}
	switch {
	case m.helping:
		lines = append(lines, m.help(room)...)
	case m.width >= roomForBoth:
		left := m.width * treeShare / 100
		lines = append(lines, beside(m.tree(branches, left, room), m.told(m.width-left-3, room), left)...)
	case m.timeline:
		lines = append(lines, m.told(m.width, room)...)
	default:
		lines = append(lines, m.tree(branches, m.width, room)...)
	}
	lines = append(lines, m.footer(m.currentOf(branches))...)
	return lines[:min(len(lines), m.height)]
}

func (m *watchModel) header() string {
	at := m.now.UTC().Format("15:04:05 UTC")
	if m.width < 2*len(at) {
		return m.style.Paint(display.Bold, display.Cut(m.title, m.width))
	}
	title := display.Cut(m.title, max(m.width-len(at)-1, 0))
	return m.style.Paint(display.Bold, title) + strings.Repeat(" ", max(m.width-utf8.RuneCountInString(title)-len(at), 1)) + m.style.Paint(display.Faint, at)
}

// footer is the sentence of what is selected, in two lines, and what can be done.
func (m *watchModel) footer(b *branch) []string {
	sentence := []string{"", ""}
	if b != nil && (b.unit.Sentence != "" || b.unit.Ends != nil) {
		wrapped := display.Wrap(display.WithEnd(display.Plain(b.unit.Sentence), b.unit, m.now), max(m.width, 1))
		copy(sentence, wrapped)
		if len(wrapped) > len(sentence) {
			sentence[1] = display.Cut(strings.Join(wrapped[1:], " "), m.width)
		}
	}
	if !m.known && len(m.units) > 0 {
		sentence[1] = m.loading()
	}
	for i := range sentence {
		sentence[i] = display.Cut(sentence[i], m.width)
	}
	return append(sentence, m.prompt())
}

func (m *watchModel) prompt() string {
	switch {
	case m.filtering:
		return m.style.Paint(display.Bold, cutFront("filter: "+m.filter+"▏", m.width))
	case m.asking != nil:
		text := strings.Join(m.asking.does[:len(m.asking.does)-namespaceWords(m.asking.does)], " ") + "; why? " + m.asking.reason + "▏"
		return m.style.Paint(display.Bold, cutFront(text, m.width))
	case m.blind != "":
		return m.style.Paint(display.Red, display.Cut(m.blind, m.width))
	case m.said != nil && m.said.ok:
		return m.style.Paint(display.Green, display.Cut(m.said.said, m.width))
	case m.said != nil:
		return m.style.Paint(display.Red, display.Cut(m.said.said, m.width))
	default:
		return m.style.Paint(display.Faint, display.Cut(m.keys(), m.width))
	}
}

// keys names keys, as many as fit; those that show the others and the way out always.
func (m *watchModel) keys() string {
	line := "? help  q quit"
	if m.filter != "" {
		line = "esc all  " + line
	}
	named := []string{"p pause", "r resume", "t retry", "a approve", "/ filter", "w waits", "↵ fold"}
	if m.width < roomForBoth {
		named = append([]string{"tab timeline"}, named...)
	}
	var fit []string
	for _, key := range named {
		if length := utf8.RuneCountInString(strings.Join(append(fit, key, line), "  ")); length > m.width {
			break
		}
		fit = append(fit, key)
	}
	return strings.Join(append(fit, line), "  ")
}

var keyHelp = [][2]string{
	{"↑ ↓, k j", "move"}, {"pgup pgdown", "move by a screen"}, {"home end, g G", "move to the first or the last"}, {"w", "move to the next that waits or failed"},
	{"← →, h l", "fold and unfold, also by enter"}, {"/", "show only what contains a text"}, {"esc", "show everything again"},
	{"tab", "show the timeline instead of the tree, where both do not fit"},
	{"p r", "pause, resume"}, {"t", "retry"}, {"a", "approve"}, {"q", "quit"},
}

func (m *watchModel) help(room int) []string {
	lines := make([]string, room)
	for i := range min(len(keyHelp), room) {
		lines[i] = display.Cut("  "+display.Pad(keyHelp[i][0], len("home end, g G"))+"  "+keyHelp[i][1], m.width)
	}
	return lines
}

// namespaceWords counts the words of a command from its namespace on, which the title
// shows.
func namespaceWords(words []string) int {
	for i, word := range words {
		if word == "-n" {
			return len(words) - i
		}
	}
	return 0
}

// cutFront shortens a line at its beginning, so that its end is seen.
func cutFront(line string, width int) string {
	typed := []rune(line)
	if len(typed) <= width {
		return line
	}
	return "…" + string(typed[len(typed)-max(width-1, 0):])
}

func beside(left, right []string, width int) []string {
	lines := make([]string, len(left))
	for i := range left {
		lines[i] = padSeen(left[i], width) + " │ " + right[i]
	}
	return lines
}

// tree is the part of the tree that fits, around what is selected.
func (m *watchModel) tree(branches []branch, width, room int) []string {
	m.scroll(branches, room)
	lines := make([]string, room)
	if len(branches) == 0 {
		lines[0] = display.Cut(m.nothing(), width)
		return lines
	}
	rows := make([]display.Row, len(branches))
	for i := range branches {
		rows[i] = m.row(&branches[i])
	}
	columns := display.Columns(rows)
	for i := range lines {
		if at := m.top + i; at < len(rows) {
			lines[i] = m.line(&rows[at], columns, width-1, branches[at].key == m.selected)
		}
	}
	return lines
}

func (m *watchModel) nothing() string {
	switch {
	case !m.known && len(m.units) == 0:
		return m.loading()
	case m.filter != "":
		return m.soFar("nothing contains " + m.filter)
	default:
		return "no rollouts found"
	}
}

// loading says what is still being read, and moves.
func (m *watchModel) loading() string {
	text := "loading"
	if len(m.reading) > 0 {
		text = "still reading: " + strings.Join(m.reading, ", ")
	}
	return text + " " + string(`|/-\`[m.ticks%4])
}

// soFar is a sentence about everything, as long as not everything was read about what was.
func (m *watchModel) soFar(sentence string) string {
	if m.known {
		return sentence
	}
	return sentence + " so far"
}

// scroll moves what is shown just as far as it takes to show what is selected.
func (m *watchModel) scroll(branches []branch, room int) {
	at := max(indexOf(branches, m.selected), 0)
	m.top = max(min(m.top, at, len(branches)-room), at-room+1, 0)
}

// row is a line of the tree, before it is known how wide the columns are.
func (m *watchModel) row(b *branch) display.Row {
	mark := "  "
	switch {
	case len(b.unit.Units) == 0:
	case m.isFolded(b):
		mark = "▸ "
	default:
		mark = "▾ "
	}
	name := display.Name(b.unit)
	if m.namespaces && b.unit.Namespace != "" {
		name = b.unit.Namespace + "/" + name
	}
	r := display.Row{Name: strings.Repeat("  ", len(b.above)) + mark + display.Plain(name), Phase: string(b.unit.Phase)}
	if b.unit.Total > 0 {
		r.Progress = fmt.Sprintf("%d/%d", b.unit.Done, b.unit.Total)
	}
	if !b.unit.IsComplete() {
		r.Since = describe.Age(m.now, b.unit.Since)
	}
	return r
}

// line lays a row out: the name gives way where there is little room.
func (m *watchModel) line(r *display.Row, w display.ColumnWidths, width int, isSelected bool) string {
	rest := 2 + w.Phase
	if w.Progress > 0 {
		rest += 2 + w.Progress
	}
	if w.Since > 0 {
		rest += 2 + w.Since
	}
	name := min(w.Name, max(width-rest, 0))
	line := display.Pad(display.Cut(r.Name, name), name)
	phase := display.Pad(r.Phase, w.Phase)
	if !isSelected {
		phase = m.style.Paint(display.ColorOf(r.Phase), phase)
	}
	line += "  " + phase
	if w.Progress > 0 {
		line += "  " + display.Pad(r.Progress, w.Progress)
	}
	if w.Since > 0 {
		line += "  " + display.Pad(r.Since, w.Since)
	}
	if ansi.StringWidth(line) > width {
		line = display.Cut(strings.TrimRight(r.Name+"  "+r.Phase, " "), width)
	}
	if isSelected {
		return m.style.Paint(reversed, "›"+padSeen(line, width))
	}
	return " " + line
}

// padSeen pads what is seen of a line, which colors are no part of.
func padSeen(line string, width int) string {
	return line + strings.Repeat(" ", max(width-ansi.StringWidth(line), 0))
}

// told is the end of the timeline, as much as fits.
func (m *watchModel) told(width, room int) []string {
	var lines []string
	for i := len(m.notes) - 1; i >= 0 && len(lines) < room; i-- {
		lines = append(m.note(&m.notes[i], width), lines...)
	}
	lines = lines[max(len(lines)-room, 0):]
	for len(lines) < room {
		lines = append(lines, "")
	}
	return lines
}

func (m *watchModel) note(n *history.Event, width int) []string {
	text := n.Reason + " " + display.EventText(n)
	if len(m.units) != 1 || n.About != m.units[0].Ref {
		text = n.About.String() + " " + text
	}
	const indent = 2
	wrapped := display.Wrap(n.At.UTC().Format(time.TimeOnly)+" "+display.Plain(text), max(width-indent, 1))
	for i := range wrapped {
		if i > 0 {
			wrapped[i] = strings.Repeat(" ", indent) + wrapped[i]
		}
		wrapped[i] = display.Cut(wrapped[i], width)
		if n.Warning {
			wrapped[i] = m.style.Paint(display.Red, wrapped[i])
		}
	}
	return wrapped
}
