package display

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/rollout"
)

var treeNow = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)

func unit(kind, name string, phase rollout.Phase, units ...describe.Unit) describe.Unit {
	return describe.Unit{Ref: describe.Ref{Kind: kind, Name: name}, Phase: phase, Units: units}
}

func because(u describe.Unit, sentence string) describe.Unit {
	since := treeNow.Add(-3 * time.Minute)
	u.Sentence, u.Since = sentence, &since
	return u
}

// rollingGroup is one with a zone that is done, one that moves, and one that waits.
func rollingGroup() describe.Unit {
	const updating = "ingester-b-1 is updating: not ready"
	group := because(unit("RolloutGroup", "ingester", rollout.PhaseProgressing,
		because(unit("Zone", "ingester-a", rollout.PhaseComplete, unit("Pod", "ingester-a-0", rollout.PhaseComplete)), "done"),
		because(unit("Zone", "ingester-b", rollout.PhaseProgressing, because(unit("Pod", "ingester-b-1", rollout.PhaseProgressing), updating)), updating),
		because(unit("Zone", "ingester-c", rollout.PhaseWaiting), "ingester-c is waiting: ingester-b has 1 of 2 ready, ingester-b-1 is not ready"),
	), updating)
	group.Namespace, group.Done, group.Total = "mimir", 3, 6
	return group
}

func TestTree(t *testing.T) {
	for name, c := range map[string]struct {
		tree Tree
		want string
	}{
		"where nothing is wrapped": {Tree{}, `
rolloutgroup/ingester  Progressing  █████░░░░░ 3/6  3m  ingester-b-1 is updating: not ready
├─ ingester-a          Complete
├─ ingester-b          Progressing                  3m
│  └─ ingester-b-1     Progressing                  3m
└─ ingester-c          Waiting                      3m  ingester-c is waiting: ingester-b has 1 of 2 ready, ingester-b-1 is not ready`},
		"on a narrow terminal": {Tree{Style: Style{Width: 60}}, `
rolloutgroup/ingester  Progressing  █████░░░░░ 3/6  3m
        ingester-b-1 is updating: not ready
├─ ingester-a          Complete
├─ ingester-b          Progressing                  3m
│  └─ ingester-b-1     Progressing                  3m
└─ ingester-c          Waiting                      3m
        ingester-c is waiting: ingester-b has 1 of 2 ready,
        ingester-b-1 is not ready`},
		"on a wide one": {Tree{Style: Style{Width: 100}}, `
rolloutgroup/ingester  Progressing  █████░░░░░ 3/6  3m  ingester-b-1 is updating: not ready
├─ ingester-a          Complete
├─ ingester-b          Progressing                  3m
│  └─ ingester-b-1     Progressing                  3m
└─ ingester-c          Waiting                      3m  ingester-c is waiting: ingester-b has 1 of 2
                                                        ready, ingester-b-1 is not ready`},
		"with everything, and its namespace": {Tree{Whole: true, Namespaces: true}, `
mimir/rolloutgroup/ingester  Progressing  █████░░░░░ 3/6  3m  ingester-b-1 is updating: not ready
├─ ingester-a                Complete                         done
│  └─ ingester-a-0           Complete
├─ ingester-b                Progressing                  3m
│  └─ ingester-b-1           Progressing                  3m
└─ ingester-c                Waiting                      3m  ingester-c is waiting: ingester-b has 1 of 2 ready, ingester-b-1 is not ready`},
	} {
		t.Run(name, func(t *testing.T) {
			c.tree.Now = treeNow
			lines := c.tree.Lines([]describe.Unit{rollingGroup()})
			if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n"), strings.Join(lines, "\n")); diff != "" {
				t.Error(diff)
			}
			for _, line := range lines {
				if n := utf8.RuneCountInString(line); c.tree.Style.Width > 0 && n > c.tree.Style.Width {
					t.Errorf("%d columns: %s", n, line)
				}
			}
		})
	}
}

// Of many that do alike, a few are shown and the others counted, each where the last of
// its like is.
func TestTreeOfMany(t *testing.T) {
	stage := unit("Stage", "rest", rollout.PhaseProgressing)
	for i := range 25 {
		phase := rollout.PhaseComplete
		if i >= 13 {
			phase = rollout.PhaseWaiting
		}
		stage.Units = append(stage.Units, unit("Cluster", fmt.Sprintf("c%02d", i), phase))
	}
	units := []describe.Unit{unit("Module", "shop", rollout.PhaseProgressing, stage)}
	units[0].Namespace = "fleet"
	few := Tree{}
	text := strings.Join(few.Lines(units), "\n")
	for _, want := range []string{"   ├─ c09", "\n   ├─ ... and 3 more: Complete\n   ├─ c13", "   ├─ c22", "\n   └─ ... and 2 more: Waiting"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q:\n%s", want, text)
		}
	}
	all := Tree{Whole: true}
	if lines := all.Lines(units); len(lines) != 27 || strings.Contains(strings.Join(lines, ""), "more") {
		t.Errorf("%d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
}

// What waits for the same is shown once. Where there is much else, that is counted.
func TestTreeOfManyWithACause(t *testing.T) {
	of := func(why string, n int) (units []describe.Unit) {
		for i := range n {
			u := unit("Deployment", fmt.Sprintf("%s%03d", why, i), rollout.PhaseWaiting)
			u.Namespace, u.Why, u.Sentence = "shop", rollout.Cause{Subject: "Secret " + why, Does: "is paused"}, "Secret "+why+" is paused"
			units = append(units, u)
		}
		return units
	}
	few := Tree{}
	units := append(of("a", 399), of("b", 3)...)
	for i := range 20 {
		units = append(units, of(fmt.Sprintf("c%d-", i), 1)...)
	}
	text := strings.Join(few.Lines(units), "\n")
	for _, want := range []string{
		"deployment/a000    Waiting  Secret a is paused\n... and 398 more, for the same reason: Waiting\ndeployment/b000 ", "\ndeployment/b002 ",
		"\ndeployment/c5-000 ", "\n... and 14 more: Waiting",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q:\n%s", want, text)
		}
	}
	if n := strings.Count(text, "\n") + 1; n != 12 {
		t.Errorf("%d lines:\n%s", n, text)
	}
	if all := (Tree{Whole: true}); len(all.Lines(units)) != len(units) {
		t.Error("the whole lacks some")
	}
}

// Colors take no room, and where there is little of it names are cut.
func TestTreeInColor(t *testing.T) {
	bare, painted := Tree{Now: treeNow, Style: Style{Width: 48}}, Tree{Now: treeNow, Style: Style{Width: 48, Color: true}}
	lines, colors := bare.Lines([]describe.Unit{rollingGroup()}), painted.Lines([]describe.Unit{rollingGroup()})
	if lines[0] != "rolloutgroup/i…  Progressing  █████░░░░░ 3/6  3m" {
		t.Errorf("%q", lines[0])
	}
	if !strings.Contains(colors[0], "\x1b[36mProgressing\x1b[0m  ") {
		t.Errorf("%q", colors[0])
	}
	for i, line := range colors {
		for _, code := range []string{cyan, Green, Yellow, "0"} {
			line = strings.ReplaceAll(line, "\x1b["+code+"m", "")
		}
		if line != lines[i] {
			t.Errorf("%q, without colors %q", line, lines[i])
		}
	}
}

func TestWithEnd(t *testing.T) {
	in := func(minutes int) time.Time { return treeNow.Add(time.Duration(minutes) * time.Minute) }
	for _, c := range []struct {
		sentence string
		ends     *describe.Range
		want     string
	}{
		{"b is updating", nil, "b is updating"},
		{"b is updating", &describe.Range{Earliest: in(1), Expected: in(2), Latest: in(4)}, "b is updating; ends in 2m0s (1m0s to 4m0s)"},
		{"", &describe.Range{Earliest: in(-2), Expected: in(-1), Latest: in(4)}, "ends in 0s (0s to 4m0s)"},
		{"b is updating", &describe.Range{Earliest: in(-3), Expected: in(-2), Latest: in(-1)}, "b is updating"},
	} {
		if got := WithEnd(c.sentence, &describe.Unit{Ends: c.ends}, treeNow); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// TestALongNameMovesItsOwnLine: without a terminal nothing is cut, and other lines stay as they are.
func TestALongNameMovesItsOwnLine(t *testing.T) {
	long := strings.Repeat("x", 60)
	tree := Tree{Now: treeNow}
	lines := tree.Lines([]describe.Unit{unit("Deployment", "web", rollout.PhaseComplete), unit("Deployment", long, rollout.PhaseComplete)})
	for i, want := range []string{Pad("deployment/web", longestName) + "  Complete", "deployment/" + long + "  Complete"} {
		if lines[i] != want {
			t.Errorf("%q, want %q", lines[i], want)
		}
	}
}
