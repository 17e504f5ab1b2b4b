package watch

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/history"
	"github.com/spillway-dev/spillway/rollout"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

func since(seconds float64) *time.Time {
	t := at(-seconds)
	return &t
}

// world is a group in its second zone, a module at its gate, and a workload.
func world() []describe.Unit {
	ref := func(kind, name string) describe.Ref { return describe.Ref{Kind: kind, Namespace: "shop", Name: name} }
	part := func(kind, name string) describe.Ref { return describe.Ref{Kind: kind, Name: name} }
	return []describe.Unit{
		{Ref: ref("Deployment", "web"), Ring: describe.Config, Phase: rollout.PhaseComplete, Sentence: "Deployment web is up to date"},
		{
			Ref: ref("RolloutGroup", "ingester"), Ring: describe.Zones, Phase: rollout.PhaseProgressing, Done: 4, Total: 9, Counted: "Pods",
			Sentence: "ingester-b-1 is updating to ingester-b-5d8f", Since: since(65), Units: []describe.Unit{
				{Ref: part("Zone", "ingester-a"), Phase: rollout.PhaseComplete, Done: 3, Total: 3, Counted: "Pods", Units: []describe.Unit{{Ref: part("Pod", "ingester-a-0"), Phase: rollout.PhaseComplete}}},
				{Ref: part("Zone", "ingester-b"), Phase: rollout.PhaseProgressing, Done: 1, Total: 3, Counted: "Pods", Since: since(65), Units: []describe.Unit{
					{Ref: part("Pod", "ingester-b-1"), Phase: rollout.PhaseProgressing, Sentence: "ingester-b-1 is updating to ingester-b-5d8f", Since: since(20)},
					{Ref: part("Pod", "ingester-b-2"), Phase: rollout.PhaseWaiting, Reason: rollout.ReasonBudget, Sentence: "ingester-b-2 is waiting: 1 of 1 is unavailable"},
				}},
				{Ref: part("Zone", "ingester-c"), Phase: rollout.PhaseWaiting, Done: 0, Total: 3, Counted: "Pods", Sentence: "ingester-c is waiting: ingester-b is updating"},
			},
		},
		{
			Ref: ref("Module", "shop"), Ring: describe.Fleet, Phase: rollout.PhaseWaiting, Reason: rollout.ReasonGate, Done: 1, Total: 3, Counted: "clusters",
			Sentence: "canary is waiting: gate approve is pending; it was created when the canary was healthy, and no other stage starts before it is approved, however long it takes",
			Since:    since(7200), Units: []describe.Unit{
				{Ref: part("Stage", "canary"), Phase: rollout.PhaseWaiting, Reason: rollout.ReasonGate, Done: 1, Total: 1, Counted: "clusters"},
				{Ref: part("Stage", "rest"), Phase: rollout.PhaseWaiting, Done: 0, Total: 2, Counted: "clusters"},
			},
		},
	}
}

// watched is a model that has seen the world, and the commands that it ran.
func watched(width, height int) (*watchModel, *[][]string) {
	commands := &[][]string{}
	m := &watchModel{
		title: "spillway watch  namespace shop", now: noon, sentences: map[describe.Ref]string{}, folded: map[string]bool{},
		steer: func(args []string) tea.Cmd {
			*commands = append(*commands, args)
			return func() tea.Msg { return steered{said: "done", ok: true} }
		},
	}
	group := describe.Ref{Kind: "RolloutGroup", Namespace: "shop", Name: "ingester"}
	for _, msg := range []tea.Msg{
		tea.WindowSizeMsg{Width: width, Height: height}, seen{world(), noon},
		heard{history.Event{At: at(-60), About: group, Reason: "ZoneDone", Text: "zone ingester-a is complete: 3 of 3 Pods are up to date"}},
		heard{history.Event{At: at(-65), About: group, Reason: "ZoneStarted", Text: "zone ingester-b is updating to revision ingester-b-5d8f"}},
	} {
		m.Update(msg)
	}
	return m, commands
}

// typed presses keys: a name in angle brackets is one key, other letters are typed.
func typed(m *watchModel, keys ...string) {
	codes := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight, "tab": tea.KeyTab, "pgdown": tea.KeyPgDown, "backspace": tea.KeyBackspace}
	for _, key := range keys {
		if code, ok := codes[key]; ok {
			m.Update(tea.KeyPressMsg{Code: code})
			continue
		}
		for _, r := range key {
			m.Update(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
}

func drawnBy(m *watchModel) string {
	return "\n" + display.TrimLines(strings.Join(m.frame(), "\n")) + "\n"
}

func TestWatchIsDrawn(t *testing.T) {
	for name, test := range map[string]struct {
		width, height int
		keys          []string
		want          string
	}{
		"tree and timeline": {80, 16, nil, `
spillway watch  namespace shop                                      12:00:00 UTC
›  deployment/web         Complete               │ 11:58:55
 ▾ rolloutgroup/ingester  Progressing  4/9  65s  │   rolloutgroup/ingester
   ▸ ingester-a           Complete     3/3       │   ZoneStarted zone ingester-b
   ▾ ingester-b           Progressing  1/3  65s  │   is updating to revision
       ingester-b-1       Progressing       20s  │   ingester-b-5d8f
       ingester-b-2       Waiting                │ 11:59:00
     ingester-c           Waiting      0/3       │   rolloutgroup/ingester
 ▾ module/shop            Waiting      1/3  2h   │   ZoneDone zone ingester-a is
     canary               Waiting      1/1       │   complete: 3 of 3 Pods are
     rest                 Waiting      0/2       │   up to date
                                                 │
                                                 │
Deployment web is up to date

p pause  r resume  t retry  a approve  / filter  w waits  ↵ fold  ? help  q quit
`},
		"what is selected says why, and a key asks": {80, 16, []string{"down", "down", "down", "down", "p", "why not"}, `
spillway watch  namespace shop                                      12:00:00 UTC
   deployment/web         Complete               │ 11:58:55
 ▾ rolloutgroup/ingester  Progressing  4/9  65s  │   rolloutgroup/ingester
   ▸ ingester-a           Complete     3/3       │   ZoneStarted zone ingester-b
   ▾ ingester-b           Progressing  1/3  65s  │   is updating to revision
›      ingester-b-1       Progressing       20s  │   ingester-b-5d8f
       ingester-b-2       Waiting                │ 11:59:00
     ingester-c           Waiting      0/3       │   rolloutgroup/ingester
 ▾ module/shop            Waiting      1/3  2h   │   ZoneDone zone ingester-a is
     canary               Waiting      1/1       │   complete: 3 of 3 Pods are
     rest                 Waiting      0/2       │   up to date
                                                 │
                                                 │
ingester-b-1 is updating to ingester-b-5d8f

pause rolloutgroup/ingester; why? why not▏
`},
		"with little room there is the tree": {40, 10, nil, `
spillway watch  namespace … 12:00:00 UTC
›  deployment/web  Complete
 ▾ rolloutgroup/…  Progressing  4/9  65s
   ▸ ingester-a    Complete     3/3
   ▾ ingester-b    Progressing  1/3  65s
       ingester-…  Progressing       20s
       ingester-…  Waiting
Deployment web is up to date

tab timeline  p pause  ? help  q quit
`},
		"which scrolls, and folds": {40, 10, []string{"down", "down", "down", "enter", "down", "down", "a"}, `
spillway watch  namespace … 12:00:00 UTC
   deployment/web  Complete
 ▾ rolloutgroup/…  Progressing  4/9  65s
   ▸ ingester-a    Complete     3/3
   ▸ ingester-b    Progressing  1/3  65s
     ingester-c    Waiting      0/3
›▾ module/shop     Waiting      1/3  2h
canary is waiting: gate approve is
pending; it was created when the canary…
fleet approve module/shop; why? ▏
`},
		"and the timeline": {40, 10, []string{"tab"}, `
spillway watch  namespace … 12:00:00 UTC
11:58:55 rolloutgroup/ingester
  ZoneStarted zone ingester-b is
  updating to revision ingester-b-5d8f
11:59:00 rolloutgroup/ingester
  ZoneDone zone ingester-a is complete:
  3 of 3 Pods are up to date
Deployment web is up to date

tab timeline  p pause  ? help  q quit
`},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := watched(test.width, test.height)
			typed(m, test.keys...)
			if diff := cmp.Diff(test.want, drawnBy(m)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// However large the terminal and whatever was pressed, a frame fits it exactly.
func TestAFrameFits(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {40, 10}, {72, 5}, {20, 4}, {10, 3}, {3, 2}, {200, 60}} {
		for _, color := range []bool{false, true} {
			m, _ := watched(size[0], size[1])
			m.style.Color = color
			for _, key := range []string{"", "down", "down", "down", "right", "down", "tab", "p", "a very long reason that does not fit anywhere", "esc", "tab", "down", "left", "t", "up"} {
				typed(m, key)
				frame := m.frame()
				if len(frame) > size[1] {
					t.Fatalf("%v after %q: %d lines", size, key, len(frame))
				}
				for _, line := range frame {
					if ansi.StringWidth(line) > size[0] {
						t.Errorf("%v after %q: %d columns in %q", size, key, ansi.StringWidth(line), line)
					}
				}
			}
		}
	}
}

// What a key does is the command that a person would type, with the reason.
func TestKeysAreCommands(t *testing.T) {
	for name, test := range map[string]struct {
		keys []string
		want []string
	}{
		"pause a group":                 {[]string{"down", "p", "the review", "enter"}, []string{"pause", "rolloutgroup/ingester", "-n", "shop", "--reason", "the review"}},
		"pause it from one of its Pods": {[]string{"down", "down", "down", "down", "p", "enter"}, []string{"pause", "rolloutgroup/ingester", "-n", "shop"}},
		"resume a group":                {[]string{"down", "r", "enter"}, []string{"resume", "rolloutgroup/ingester", "-n", "shop"}},
		"retry a group":                 {[]string{"down", "t", "xy", "backspace", "enter"}, []string{"retry", "rolloutgroup/ingester", "-n", "shop", "--reason", "x"}},
		"pause a module":                {[]string{"pgdown", "up", "up", "p", "enter"}, []string{"pause", "module/shop", "-n", "shop"}},
		"approve a module":              {[]string{"pgdown", "up", "up", "a", "enter"}, []string{"fleet", "approve", "module/shop", "-n", "shop"}},
		"approve the gate of a group":   {[]string{"down", "a", "enter"}, []string{"approve", "rolloutgroup/ingester", "-n", "shop"}},
		"approve a stage":               {[]string{"pgdown", "up", "a", "enter"}, []string{"fleet", "approve", "module/shop", "-n", "shop", "--stage", "canary"}},
		"think better of it":            {[]string{"down", "p", "q", "esc"}, nil},
		"pause a workload":              {[]string{"p", "enter"}, []string{"pause", "deployment/web", "-n", "shop"}},
		"retry a module":                {[]string{"pgdown", "up", "up", "t", "enter"}, []string{"retry", "module/shop", "-n", "shop"}},
		"retry a workload":              {[]string{"t"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m, commands := watched(80, 24)
			typed(m, test.keys...)
			var got []string
			for _, command := range *commands {
				got = append(got, command...)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if test.want == nil && m.asking != nil {
				t.Errorf("it still asks about %v", m.asking.does)
			}
		})
	}
}

// What does not contain the filter is left out, with what it is not part of; also what is
// folded is looked through.
func TestFilter(t *testing.T) {
	m, commands := watched(80, 24)
	names := func() string {
		var names []string
		for _, b := range m.branches() {
			names = append(names, b.unit.Name)
		}
		return strings.Join(names, " ")
	}
	typed(m, "/", "nowhere")
	if got := names(); got != "" || !strings.Contains(drawnBy(m), "nothing contains nowhere") {
		t.Errorf("%s; %s", got, drawnBy(m))
	}
	for range len("nowhere") {
		typed(m, "backspace")
	}
	typed(m, "Gester-A")
	if got := names(); got != "ingester ingester-a ingester-a-0" || !strings.Contains(drawnBy(m), "filter: Gester-A▏") {
		t.Errorf("%s; %s", got, drawnBy(m))
	}
	typed(m, "enter", "down", "p", "enter") // keys are commands again, for what is shown
	if len(*commands) != 1 || (*commands)[0][1] != "rolloutgroup/ingester" {
		t.Errorf("%v; %s", *commands, drawnBy(m))
	}
	if typed(m, "esc"); len(m.branches()) != 10 {
		t.Errorf("esc shows %s", names())
	}
	typed(m, "/")
	if m.Update(tea.PasteMsg{Content: "gate approve"}); names() != "shop" {
		t.Errorf("by a sentence: %s", names())
	}
	if typed(m, "esc"); len(m.branches()) != 10 || m.filtering {
		t.Errorf("esc shows %s", names())
	}
}

// w goes through what waits, from top to bottom and again from the top; g and G go to the
// ends.
func TestJumps(t *testing.T) {
	m, _ := watched(80, 24)
	var got []string
	for _, key := range []string{"G", "g", "w", "w", "w", "w", "w"} {
		typed(m, key)
		got = append(got, m.current().unit.Name)
	}
	want := []string{"rest", "web", "ingester-b-2", "ingester-c", "canary", "rest", "ingester-b-2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	m.Update(seen{world()[:1], noon})
	if typed(m, "w"); !strings.Contains(drawnBy(m), "nothing waits") {
		t.Error(drawnBy(m))
	}
}

// ? shows what the keys do, and the next key shows the rest again. However narrow the
// terminal, the way out is named.
func TestHelp(t *testing.T) {
	m, _ := watched(60, 24)
	if line := m.keys(); line != "tab timeline  p pause  r resume  t retry  ? help  q quit" {
		t.Errorf("the keys are %q", line)
	}
	typed(m, "?")
	if got := drawnBy(m); !strings.Contains(got, "move to the next that waits or failed") || strings.Contains(got, "ingester-b-1") {
		t.Error(got)
	}
	typed(m, "p")
	if got := drawnBy(m); m.asking != nil || !strings.Contains(got, "ingester-b-1") {
		t.Error(got)
	}
	m, _ = watched(20, 24)
	if line := m.keys(); line != "? help  q quit" {
		t.Errorf("the keys are %q", line)
	}
}

// While nothing is known something moves.
func TestLoading(t *testing.T) {
	m := &watchModel{width: 80, height: 10}
	frames := map[string]bool{}
	for range 8 {
		m.Update(ticked(noon))
		frames[drawnBy(m)] = true
	}
	if len(frames) != 4 || !strings.Contains(drawnBy(m), "loading |") {
		t.Errorf("%d frames; %s", len(frames), drawnBy(m))
	}
}

// What is known is shown before the rest is, and says that it is not all.
func TestGlimpses(t *testing.T) {
	m := &watchModel{title: "spillway watch  namespace shop", now: noon, width: 60, height: 9, sentences: map[describe.Ref]string{}, folded: map[string]bool{}}
	shows := func(want string) {
		t.Helper()
		if diff := cmp.Diff(want, drawnBy(m)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
	m.Update(glimpsed{Reading: []string{describe.Config, describe.Plans}})
	if got := drawnBy(m); !strings.Contains(got, "still reading: config, plans |") || strings.Contains(got, "no rollouts") {
		t.Error(got)
	}
	all := world()
	web := describe.Unit{Ref: all[0].Ref, Ring: describe.Config, Phase: describe.PhaseReading, Sentence: "Deployment web is being read"}
	m.Update(glimpsed{Units: append([]describe.Unit{web}, all[2]), Reading: []string{describe.Config, describe.Zones}})
	shows(`
spillway watch  namespace shop                  12:00:00 UTC
›  deployment/web  Reading
 ▾ module/shop     Waiting  1/3  2h
     canary        Waiting  1/1
     rest          Waiting  0/2

Deployment web is being read
still reading: config, zones |
tab timeline  p pause  r resume  t retry  ? help  q quit
`)
	typed(m, "/nowhere", "enter")
	if got := drawnBy(m); !strings.Contains(got, "nothing contains nowhere so far") {
		t.Error(got)
	}
	typed(m, "esc", "G", "p")
	if got := drawnBy(m); !strings.Contains(got, "pause module/shop; why?") {
		t.Error(got)
	}
	typed(m, "esc")
	m.Update(seen{all, noon})
	if got := drawnBy(m); strings.Contains(got, "still reading") || !strings.Contains(got, "›    rest") || len(m.notes) > 0 {
		t.Errorf("%d on the timeline; %s", len(m.notes), got)
	}
	m.Update(glimpsed{Reading: []string{describe.Config}})
	if len(m.units) != len(all) {
		t.Error("a late glimpse replaces what is known")
	}
}

func TestTheWatchIsQuit(t *testing.T) {
	m, _ := watched(80, 24)
	if _, command := m.Update(tea.KeyPressMsg{Code: tea.KeyEscape}); command != nil {
		t.Error("esc quits")
	}
	for _, msg := range []tea.Msg{tea.KeyPressMsg{Code: 'q', Text: "q"}, tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}, finished{}} {
		_, command := m.Update(msg)
		if command == nil {
			t.Fatalf("%v does not quit", msg)
		}
		if _, ok := command().(tea.QuitMsg); !ok {
			t.Errorf("%v does something else than to quit", msg)
		}
	}
	if got := m.View().Content; got != "" {
		t.Errorf("at the end there is still %q", got)
	}
}

// The timeline has Events and sentences as they change, and forgets what is old.
func TestTimeline(t *testing.T) {
	m, _ := watched(80, 24)
	units := world()
	m.Update(seen{units, at(1)})
	units = world()
	units[1].Phase, units[1].Sentence = rollout.PhasePaused, "the rollout is paused by admin"
	m.Update(seen{units, at(2)})
	m.Update(heard{history.Event{At: at(1), About: units[1].Ref, Reason: "Paused", Text: "Paused, by admin"}})
	var got []string
	for _, n := range m.notes {
		got = append(got, n.Reason)
	}
	if diff := cmp.Diff([]string{"ZoneStarted", "ZoneDone", "Paused", "Paused"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for range 2 * rememberedNotes {
		m.Update(heard{history.Event{At: at(3), Reason: "x"}})
	}
	if len(m.notes) != rememberedNotes || m.notes[0].Reason != "x" {
		t.Errorf("%d are remembered, the first being %v", len(m.notes), m.notes[0])
	}
}

// The timeline has one line for a hash, which is short.
func TestTheTimelineShortensHashes(t *testing.T) {
	m, _ := watched(80, 24)
	about := describe.Ref{Kind: "Deployment", Namespace: "shop", Name: "web"}
	hash := strings.Repeat("0123456789abcdef", 4)
	for text, want := range map[string]string{
		"Configuration hash updated to " + hash: "12:00:01 deployment/web ConfigChanged Configuration hash updated to 0123456789",
	} {
		if got := m.note(&history.Event{At: at(1), About: about, Reason: "ConfigChanged", Text: text}, 80); len(got) != 1 || got[0] != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What is selected stays so while units come and go.
func TestTheSelectionStays(t *testing.T) {
	m, _ := watched(80, 24)
	typed(m, "down", "down")
	units := world()
	m.Update(seen{units[1:], noon})
	if got := m.current().unit.Name; got != "ingester-a" {
		t.Errorf("%s is selected", got)
	}
	m.Update(seen{units[2:], noon})
	if m.current() == nil {
		t.Error("nothing is selected")
	}
	m.Update(seen{nil, noon})
	typed(m, "down", "enter", "left", "p")
	if frame := drawnBy(m); !strings.Contains(frame, "no rollouts found") {
		t.Error(frame)
	}
}

// Ctrl+C interrupts, q does not; of a question both are no end.
func TestHowAWatchIsLeft(t *testing.T) {
	ctrlC := tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
	m, _ := watched(80, 24)
	typed(m, "down", "p")
	if m.Update(ctrlC); m.interrupted || m.asking != nil {
		t.Error("the question is still asked, or was taken for the watch")
	}
	if m.Update(ctrlC); !m.interrupted {
		t.Error("it is not interrupted")
	}
	if typed(m, "q"); m.interrupted {
		t.Error("to quit is no interruption")
	}
}

// What runs when the person quits comes to its end, and what it says is not lost; what
// they were shown is not said again.
func TestErrandsAreDone(t *testing.T) {
	m, _ := watched(80, 24)
	e, gate := &errands{}, make(chan struct{})
	m.Update(e.do(func() steered { return steered{said: "shown", ok: true} })())
	e.do(func() steered { <-gate; return steered{said: "not shown", ok: true} })
	close(gate)
	if diff := cmp.Diff([]string{"not shown"}, e.unheard()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Elsewhere there is a line for whatever changes, and none else.
func TestWatchInLines(t *testing.T) {
	var b strings.Builder
	l := &lineWriter{out: &b, began: noon}
	l.sees(world(), noon)
	l.sees(world(), at(1))
	units := world()
	units[1].Done, units[1].Units[1].Done = 5, 2
	l.sees(units, at(2))
	l.hears(&history.Event{At: at(-60), About: units[1].Ref, Reason: "Old", Text: "history"})
	l.hears(&history.Event{At: at(3), About: units[1].Ref, Reason: "RolloutStuck", Text: "it is\nstuck", Warning: true})
	want := `12:00:00 deployment/web Complete: Deployment web is up to date
12:00:00 rolloutgroup/ingester Progressing 4/9 Pods: ingester-b-1 is updating to ingester-b-5d8f
12:00:00 rolloutgroup/ingester ingester-b Progressing 1/3 Pods
12:00:00 rolloutgroup/ingester ingester-b-1 Progressing: ingester-b-1 is updating to ingester-b-5d8f
12:00:00 rolloutgroup/ingester ingester-b-2 Waiting: ingester-b-2 is waiting: 1 of 1 is unavailable
12:00:00 rolloutgroup/ingester ingester-c Waiting 0/3 Pods: ingester-c is waiting: ingester-b is updating
12:00:00 module/shop Waiting 1/3 clusters: canary is waiting: gate approve is pending; it was created when the canary was healthy, and no other stage starts before it is approved, however long it takes
12:00:00 module/shop canary Waiting 1/1 clusters
12:00:00 module/shop rest Waiting 0/2 clusters
12:00:02 rolloutgroup/ingester Progressing 5/9 Pods: ingester-b-1 is updating to ingester-b-5d8f
12:00:02 rolloutgroup/ingester ingester-b Progressing 2/3 Pods
12:00:03 rolloutgroup/ingester RolloutStuck: it is stuck
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Policies, releases and config are steered as a person would type it.
func TestCommandsOfReleases(t *testing.T) {
	release := &describe.Unit{Ref: describe.Ref{Kind: describe.KindRelease, Namespace: "shop", Name: "Secret vault/db@9676b5e"}}
	for want, of := range map[string]struct {
		verb string
		unit *describe.Unit
	}{
		"pause configpolicy/careful -n shop": {"pause", &describe.Unit{Ref: describe.Ref{Kind: describe.KindPolicy, Namespace: "shop", Name: "careful"}}},
		"resume clusterconfigpolicy/default": {"resume", &describe.Unit{Ref: describe.Ref{Kind: describe.KindClusterPolicy, Name: "default"}}},
		"pause configmap/app -n shop":        {"pause", &describe.Unit{Ref: describe.Ref{Kind: describe.KindConfigMap, Namespace: "shop", Name: "app"}}},
		"retry secret/db -n vault":           {"retry", release},
		"":                                   {"pause", release},
	} {
		if got := strings.Join(commandFor(of.verb, of.unit, of.unit), " "); got != want {
			t.Errorf("%s of %s is %q, want %q", of.verb, of.unit.Name, got, want)
		}
	}
}
