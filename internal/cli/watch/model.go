package watch

import (
	"math"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/history"
	"github.com/spillway-dev/spillway/rollout"
)

// rememberedNotes bounds the timeline.
const rememberedNotes = 200

// The messages that the model receives besides those of the terminal.
type (
	// seen is how things stand.
	seen struct {
		units []describe.Unit
		now   time.Time
	}
	// glimpsed is what is known before everything was read.
	glimpsed describe.Partial
	// missed is why nothing can be seen at present.
	missed struct{ err error }
	// heard is an Event.
	heard struct{ note history.Event }
	// ticked is the time.
	ticked time.Time
	// steered is what became of a command.
	steered struct {
		said string
		ok   bool
		// heard is set once the person is shown it, if anybody wants to know.
		heard *bool
	}
	// finished ends the view.
	finished struct{}
)

// watchModel is what a person sees and does who watches in a terminal. It reads no API server:
// what it shows comes as messages, and what is to be done goes to steer.
type watchModel struct {
	title string
	style display.Style
	// namespaces shows them.
	namespaces bool
	// steer gives a command, and answers with steered.
	steer func(args []string) tea.Cmd

	width, height int
	now           time.Time
	units         []describe.Unit
	// known is true once everything was seen. Until then units are what is known so far, and
	// reading what is still being read.
	known   bool
	reading []string
	// ticks counts how often the clock has ticked.
	ticks int
	notes []history.Event
	// sentences are those that the timeline has last.
	sentences map[describe.Ref]string

	// folded is what the person has folded or unfolded, by the key of a branch.
	folded map[string]bool
	// selected is the key of a branch, top the first that is shown.
	selected string
	top      int
	// timeline is shown instead of the tree where there is no room for both.
	timeline bool
	// helping shows what the keys do, until another is pressed.
	helping bool
	// filter is what the names or sentences that are shown contain; nothing is left out if
	// it is empty. filtering is true while it is typed.
	filter    string
	filtering bool
	asking    *question
	said      *steered
	ended     bool
	// interrupted is true if the person has left by Ctrl+C.
	interrupted bool
	// blind is why what is shown may be old, empty if it is not.
	blind string
}

type question struct {
	// does is the command that it is about, as it will be given but for the reason.
	does   []string
	reason string
}

// Init implements [tea.Model].
func (m *watchModel) Init() tea.Cmd { return m.tick() }

// Update implements [tea.Model].
func (m *watchModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case seen:
		m.see(msg.units, msg.now)
	case glimpsed:
		if !m.known {
			m.units, m.reading = msg.Units, msg.Reading
			m.selectShown()
		}
	case missed:
		m.blind = "API server not reachable, retrying: " + display.Plain(msg.err.Error())
	case heard:
		m.hear(msg.note)
	case ticked:
		m.now = time.Time(msg)
		m.ticks++
		return m, m.tick()
	case steered:
		m.said = &msg
		if msg.heard != nil {
			*msg.heard = true
		}
	case finished:
		m.ended = true
		return m, tea.Quit
	case tea.PasteMsg:
		switch {
		case m.asking != nil:
			m.asking.reason += display.Plain(msg.Content)
		case m.filtering:
			m.filter += display.Plain(msg.Content)
			m.selectShown()
		}
	case tea.KeyPressMsg:
		return m, m.press(msg)
	}
	return m, nil
}

// spinsApart is how fast the spinner spins, and spinsBesideUnits beside units, each of which is
// drawn again.
const (
	spinsApart       = 100 * time.Millisecond
	spinsBesideUnits = 400 * time.Millisecond
)

// tick tells the time once a second, and more often while not everything is known.
func (m *watchModel) tick() tea.Cmd {
	every := looksApart
	switch {
	case m.known:
	case len(m.units) > 0:
		every = spinsBesideUnits
	default:
		every = spinsApart
	}
	return tea.Tick(every, func(now time.Time) tea.Msg { return ticked(now) })
}

// see takes over how things stand, and puts on the timeline whose sentence has changed.
func (m *watchModel) see(units []describe.Unit, now time.Time) {
	for i := range units {
		u := &units[i]
		if before, ok := m.sentences[u.Ref]; m.known && (!ok || before != u.Sentence) && u.Sentence != "" {
			m.hear(history.Event{At: now, About: u.Ref, Ring: u.Ring, Warning: hasFailed(u), Reason: string(u.Phase), Text: u.Sentence})
		}
		m.sentences[u.Ref] = u.Sentence
	}
	m.units, m.now, m.known, m.blind = units, now, true, ""
	m.selectShown()
}

// hear puts something on the timeline, where it belongs by its time.
func (m *watchModel) hear(n history.Event) {
	m.notes = append(m.notes, n)
	slices.SortStableFunc(m.notes, func(a, b history.Event) int { return a.At.Compare(b.At) })
	m.notes = m.notes[max(len(m.notes)-rememberedNotes, 0):]
}

func (m *watchModel) press(key tea.KeyPressMsg) tea.Cmd {
	switch name := key.String(); {
	case m.asking != nil:
		return m.answer(key)
	case m.filtering:
		m.find(key)
	case name == "q", name == "ctrl+c":
		m.interrupted = name == "ctrl+c"
		return tea.Quit
	case m.helping:
		m.helping = false
	default:
		m.said = nil
		m.act(name)
	}
	return nil
}

// act does what a key stands for that neither quits nor is typed into anything.
func (m *watchModel) act(key string) {
	switch key {
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.move(-m.height)
	case "pgdown":
		m.move(m.height)
	case "home", "g":
		m.move(-math.MaxInt32)
	case "end", "G":
		m.move(math.MaxInt32)
	case "w":
		m.jump()
	case "left", "h":
		m.foldSelected(true)
	case "right", "l":
		m.foldSelected(false)
	case "enter", "space":
		m.toggle()
	case "tab":
		m.timeline = !m.timeline
	case "?":
		m.helping = true
	case "/":
		m.filtering = true
	case "esc":
		m.filter = ""
	case "p", "r", "t", "a":
		m.ask(key)
	}
}

// answer takes what is typed for a reason.
func (m *watchModel) answer(key tea.KeyPressMsg) tea.Cmd {
	q := m.asking
	switch key.String() {
	case "esc", "ctrl+c":
		m.asking = nil
	case "enter":
		m.asking = nil
		args := q.does
		if reason := strings.TrimSpace(q.reason); reason != "" {
			args = append(slices.Clone(args), "--reason", reason)
		}
		return m.steer(args)
	case "backspace":
		typed := []rune(q.reason)
		q.reason = string(typed[:max(len(typed)-1, 0)])
	default:
		q.reason += display.Plain(key.Text)
	}
	return nil
}

// branch is a unit in the tree, with those that it is part of.
type branch struct {
	key   string
	unit  *describe.Unit
	above []*describe.Unit
}

func (m *watchModel) move(by int) {
	branches := m.branches()
	if len(branches) == 0 {
		return
	}
	to := min(max(max(indexOf(branches, m.selected), 0)+by, 0), len(branches)-1)
	m.selected = branches[to].key
}

// foldSelected folds what is selected; or what that is part of, if it is folded already.
func (m *watchModel) foldSelected(fold bool) {
	b := m.current()
	if b == nil {
		return
	}
	if fold && (len(b.unit.Units) == 0 || m.isFolded(b)) && len(b.above) > 0 {
		m.selected = b.key[:strings.LastIndex(b.key, "/"+b.unit.Namespace+"/"+b.unit.String())]
		return
	}
	m.folded[b.key] = fold
}

func (m *watchModel) toggle() {
	if b := m.current(); b != nil && len(b.unit.Units) > 0 {
		m.folded[b.key] = !m.isFolded(b)
	}
}

var verbs = map[string]string{"p": "pause", "r": "resume", "t": "retry", "a": "approve"}

// ask asks why what is selected is to be steered, if it can be.
func (m *watchModel) ask(key string) {
	b := m.current()
	if b == nil {
		return
	}
	for _, u := range slices.Backward(append(slices.Clone(b.above), b.unit)) {
		if does := commandFor(verbs[key], u, b.unit); does != nil {
			m.asking = &question{does: does}
			return
		}
	}
	m.said = &steered{said: verbs[key] + ": not of " + display.Name(b.unit) + "; " + steerable[verbs[key]]}
}

func (m *watchModel) current() *branch { return m.currentOf(m.branches()) }

func (m *watchModel) currentOf(branches []branch) *branch {
	if i := indexOf(branches, m.selected); i >= 0 {
		return &branches[i]
	}
	return nil
}

func indexOf(branches []branch, key string) int {
	return slices.IndexFunc(branches, func(b branch) bool { return b.key == key })
}

// branches are those that are not folded away, from top to bottom.
func (m *watchModel) branches() []branch { return m.beneath(nil, m.units, "", nil) }

func (m *watchModel) beneath(branches []branch, units []describe.Unit, key string, above []*describe.Unit) []branch {
	for i := range units {
		if !m.finds(&units[i]) {
			continue
		}
		b := branch{key: key + "/" + units[i].Namespace + "/" + units[i].String(), unit: &units[i], above: above}
		branches = append(branches, b)
		if !m.isFolded(&b) {
			branches = m.beneath(branches, b.unit.Units, b.key, append(slices.Clone(above), b.unit))
		}
	}
	return branches
}

// isFolded is what the person wants, and else true of what is complete, unless something
// is looked for.
func (m *watchModel) isFolded(b *branch) bool {
	if wish, ok := m.folded[b.key]; ok {
		return wish
	}
	return m.filter == "" && b.unit.IsComplete()
}

// steerable says of each verb what it is for.
var steerable = map[string]string{
	"pause":  "workloads, groups, Instances, modules, ConfigMaps, Secrets and policies can be paused",
	"resume": "workloads, groups, Instances, modules, ConfigMaps, Secrets and policies can be resumed",
	"retry":  "groups, ConfigMaps, Secrets, releases, modules and Instances can be retried", "approve": "groups, Instances, ConfigPolicies and modules can be approved",
}

// commandFor is the command by which a person would do it, nil if there is none. What is
// selected may be a part of the unit.
func commandFor(verb string, u, selected *describe.Unit) []string {
	ref := u.Ref
	if u.Kind == describe.KindRelease && verb == string(act.Retry) {
		ref = *describe.RefOf(content.ReleaseNamed(u.Name, u.Namespace).Object)
	}
	if !slices.Contains(act.Verbs(ref.Kind), act.Verb(verb)) {
		return nil
	}
	args := act.Args(act.Request{Ref: ref, Verb: act.Verb(verb)})
	if verb == string(act.Approve) && describe.RingOf(ref.Kind) == describe.Fleet {
		args = append([]string{describe.Fleet}, args...)
	}
	if verb == string(act.Approve) && selected.Kind == describe.KindStage && selected.Reason == rollout.ReasonGate {
		args = append(args, "--stage", selected.Name)
	}
	return args
}

// find takes what is typed for the filter, which applies immediately.
func (m *watchModel) find(key tea.KeyPressMsg) {
	switch key.String() {
	case "esc", "ctrl+c":
		m.filter, m.filtering = "", false
	case "enter":
		m.filtering = false
	case "backspace":
		typed := []rune(m.filter)
		m.filter = string(typed[:max(len(typed)-1, 0)])
	default:
		m.filter += display.Plain(key.Text)
	}
	m.selectShown()
}

func (m *watchModel) selectShown() {
	if branches := m.branches(); len(branches) > 0 && indexOf(branches, m.selected) < 0 {
		m.selected = branches[min(max(m.top, 0), len(branches)-1)].key
	}
}

// finds is true of a unit whose name or sentence contains the filter, and of one that has
// such a unit beneath it.
func (m *watchModel) finds(u *describe.Unit) bool {
	if m.filter == "" {
		return true
	}
	has := func(text string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(m.filter)) }
	if has(u.Namespace+"/"+display.Name(u)) || has(u.Sentence) {
		return true
	}
	for i := range u.Units {
		if m.finds(&u.Units[i]) {
			return true
		}
	}
	return false
}

// jump selects the next that waits or needs an action; what consists of others counts only
// if it is folded.
func (m *watchModel) jump() {
	branches := m.branches()
	from := indexOf(branches, m.selected) + 1
	for i := range branches {
		b := &branches[(from+i)%len(branches)]
		if isStopped(b.unit) && (len(b.unit.Units) == 0 || m.isFolded(b)) {
			m.selected = b.key
			return
		}
	}
	m.said = &steered{said: m.soFar("nothing waits"), ok: true}
}

// isStopped is true of what neither is complete nor moves, as far as that is known.
func isStopped(u *describe.Unit) bool {
	return !slices.Contains([]rollout.Phase{"", describe.PhaseReading, rollout.PhaseComplete, rollout.PhaseProgressing}, u.Phase)
}
