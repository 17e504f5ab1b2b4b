package rollout_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/spillway-dev/spillway/rollout"
)

// TestNarratives plays the stories of testdata. testdata/README.md says how to
// read and to write them; after a deliberate change run them with -rewrite.
func TestNarratives(t *testing.T) {
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		s := &story{now: noon}

		datadriven.RunTest(t, path, s.tell)
	})
}

// story is a world that a script changes, line by line.
type story struct {
	now     time.Time
	root    rollout.Unit
	history []rollout.Entry
}

// tell carries out one command and returns what the script has to expect.
func (s *story) tell(t *testing.T, d *datadriven.TestData) string {
	t.Helper()

	switch d.Cmd {
	case "world":
		s.root = parseTree(t, s.now, d.Input)
		// Everything has been healthy for a long time.
		s.each(func(u *rollout.Unit) { u.Leaf.HealthySince = s.now.Add(-24 * time.Hour) })

		return printPlan(s.plan())
	case "decide":
		return printPlan(s.plan())
	case "step":
		return s.step()
	case "run":
		return s.run(t, d)
	case "tick":
		return s.tick(t, d)
	case "history":
		return s.past(d)
	}

	change, known := changes[d.Cmd]
	if !known {
		t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
	}

	if len(d.CmdArgs) > 0 && d.CmdArgs[0].Key == "everything" {
		s.each(func(u *rollout.Unit) { change(s, u, words(d)) })
	} else {
		for _, name := range names(d) {
			change(s, s.find(t, d, name), words(d))
		}
	}

	return printPlan(s.plan())
}

// names are the arguments without a value, which name units; none is the root.
func names(d *datadriven.TestData) []string {
	var names []string

	for _, a := range d.CmdArgs {
		if len(a.Vals) == 0 {
			names = append(names, a.Key)
		}
	}

	if len(names) == 0 {
		names = []string{""}
	}

	return names
}

// words are the arguments with a value.
func words(d *datadriven.TestData) map[string]string {
	words := map[string]string{}
	for _, a := range d.CmdArgs {
		words[a.Key] = strings.Join(a.Vals, ", ")
	}

	return words
}

// changes are what may happen in a world from outside, to the units that are named.
var changes = map[string]func(s *story, u *rollout.Unit, words map[string]string){
	"target": func(s *story, u *rollout.Unit, words map[string]string) {
		s.aim(u, words["rev"])
	},
	"ready": func(s *story, u *rollout.Unit, _ map[string]string) {
		if isLeaf(u) && u.Leaf.Health != rollout.Healthy {
			u.Leaf.Health, u.Leaf.Reason, u.Leaf.HealthySince, u.Leaf.Settled = rollout.Healthy, "", s.now, true
		}
	},
	"break": func(_ *story, u *rollout.Unit, words map[string]string) {
		u.Leaf.Health, u.Leaf.Reason = rollout.Degraded, words["reason"]
	},
	"fail": func(_ *story, u *rollout.Unit, words map[string]string) {
		u.Leaf.Health, u.Leaf.Reason = rollout.Failed, words["reason"]
	},
	"refuse": func(s *story, u *rollout.Unit, words map[string]string) {
		in, _ := time.ParseDuration(words["retry"])
		u.Leaf.RetryAt, u.Leaf.RetryReason = s.now.Add(in), words["reason"]
	},
	"pause": func(s *story, u *rollout.Unit, words map[string]string) {
		u.Pause = &rollout.Pause{By: words["by"], Reason: words["reason"], Since: s.now}
	},
	"resume": func(_ *story, u *rollout.Unit, _ map[string]string) { u.Pause = nil },
	"block": func(s *story, u *rollout.Unit, words map[string]string) {
		u.Block = &rollout.Block{Reason: rollout.Reason(words["reason"]), Message: words["message"], Since: s.now}
	},
	"unblock": func(_ *story, u *rollout.Unit, _ map[string]string) { u.Block = nil },
	"gate": func(_ *story, u *rollout.Unit, words map[string]string) {
		verdicts := map[string]rollout.Verdict{"passed": rollout.Passed, "refused": rollout.Refused}
		for i := range u.Gates {
			if u.Gates[i].Name == words["name"] {
				u.Gates[i].Verdict, u.Gates[i].Message = verdicts[words["verdict"]], words["message"]
			}
		}
	},
	"lock": func(s *story, u *rollout.Unit, words map[string]string) {
		u.Lock = &rollout.Lock{Holder: words["holder"], Purpose: words["purpose"], Unit: words["unit"], Since: s.now}
	},
	"unlock": func(_ *story, u *rollout.Unit, _ map[string]string) { u.Lock = &rollout.Lock{} },
	"retry": func(_ *story, u *rollout.Unit, _ map[string]string) {
		u.StartedAt, u.Leaf.Current, u.Leaf.Health = time.Time{}, "", rollout.Unknown
	},
}

func isLeaf(u *rollout.Unit) bool { return len(u.Children) == 0 && !u.Group }

// aim gives everything beneath a unit a new target, for which nothing has been
// started yet, and no gate has passed.
func (s *story) aim(u *rollout.Unit, revision string) {
	u.StartedAt = time.Time{}
	u.Leaf.Settled = false

	for i := range u.Gates {
		u.Gates[i].Verdict, u.Gates[i].Message = rollout.Pending, ""
	}

	if isLeaf(u) {
		u.Leaf.Target = revision
	}

	for i := range u.Children {
		s.aim(&u.Children[i], revision)
	}
}

func (s *story) plan() rollout.Plan {
	return rollout.Decide(rollout.Observed{Now: s.now, Self: "spillway", Root: s.root})
}

// step does what the plan says: it takes or releases the lock, and moves leaves.
// It tells what is to be done after that.
func (s *story) step() string {
	s.carryOut(s.plan())

	return printPlan(s.plan())
}

func (s *story) carryOut(p rollout.Plan) {
	if p.Acquire != nil {
		s.setLock(&s.root, *p.Acquire)
	}

	if p.Release {
		s.setLock(&s.root, rollout.Lock{})
	}

	for _, step := range p.Steps {
		s.move(&s.root, step.Path)
	}
}

// setLock sets the first lock of the tree.
func (s *story) setLock(u *rollout.Unit, l rollout.Lock) bool {
	if u.Lock != nil {
		u.Lock = &l

		return true
	}

	for i := range u.Children {
		if s.setLock(&u.Children[i], l) {
			return true
		}
	}

	return false
}

// move moves the leaf at a path and records when it, and all above it, were started.
func (s *story) move(u *rollout.Unit, path rollout.Path) {
	if u.StartedAt.IsZero() {
		u.StartedAt = s.now
	}

	if u.Policy.Rate.Every > 0 {
		u.Policy.Rate.Starts = append(u.Policy.Rate.Starts, s.now)
	}

	if len(path) == 0 {
		u.Leaf.Current, u.Leaf.Health, u.Leaf.Reason = u.Leaf.Target, rollout.Progressing, ""

		return
	}

	for i := range u.Children {
		if u.Children[i].Name == path[0] {
			s.move(&u.Children[i], path[1:])
		}
	}
}

// tick lets time pass: "tick 30s", or "tick until-wake".
func (s *story) tick(t *testing.T, d *datadriven.TestData) string {
	t.Helper()

	if d.CmdArgs[0].Key == "until-wake" {
		s.now = s.plan().Wake
	} else {
		span, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			t.Fatal(err)
		}

		s.now = s.now.Add(span)
	}

	return "it is " + s.now.Format(time.TimeOnly) + "\n" + printPlan(s.plan())
}

// run lets a rollout take its course where every leaf is ready some time after it
// was moved, and tells only what happens: "run ready-after=20s".
func (s *story) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()

	after, err := time.ParseDuration(words(d)["ready-after"])
	if err != nil {
		t.Fatal(err)
	}

	var b strings.Builder

	for range 1000 {
		p := s.plan()
		s.carryOut(p)
		s.tellSteps(&b, p)

		next := s.nextReady(after)
		if next.IsZero() && p.Wake.IsZero() && len(p.Steps) == 0 {
			fmt.Fprintf(&b, "%s  %s", s.now.Format(time.TimeOnly), printPlan(s.plan()))

			return b.String()
		}

		if next.IsZero() || !p.Wake.IsZero() && p.Wake.Before(next) {
			next = p.Wake
		}

		s.now = next
		s.becomeReady(after)
	}

	t.Fatalf("%s: it never ends", d.Pos)

	return ""
}

func (s *story) tellSteps(b *strings.Builder, p rollout.Plan) {
	var paths []string
	for _, step := range p.Steps {
		paths = append(paths, step.Path.String())
	}

	if len(paths) > 0 {
		fmt.Fprintf(b, "%s  %s\n", s.now.Format(time.TimeOnly), strings.Join(paths, ", "))
	}
}

// nextReady is when the next leaf that is updating will be ready.
func (s *story) nextReady(after time.Duration) time.Time {
	var next time.Time

	s.each(func(u *rollout.Unit) {
		at := u.StartedAt.Add(after)
		if u.Leaf.Health == rollout.Progressing && (next.IsZero() || at.Before(next)) {
			next = at
		}
	})

	return next
}

func (s *story) becomeReady(after time.Duration) {
	s.each(func(u *rollout.Unit) {
		if u.Leaf.Health == rollout.Progressing && !s.now.Before(u.StartedAt.Add(after)) {
			changes["ready"](s, u, nil)
		}
	})
}

// past advances the history of a revision by the phase as it is now, and tells it.
func (s *story) past(d *datadriven.TestData) string {
	s.history = rollout.Advance(s.history, words(d)["rev"], s.plan().Phase, s.now, 10)

	var b strings.Builder

	for _, e := range s.history {
		fmt.Fprintf(&b, "%s %s, %s to", e.Revision, e.Outcome, e.StartedAt.Format(time.TimeOnly))

		if e.EndedAt.IsZero() {
			b.WriteString(" now\n")
		} else {
			fmt.Fprintf(&b, " %s\n", e.EndedAt.Format(time.TimeOnly))
		}
	}

	return b.String()
}

// each calls f for every leaf.
func (s *story) each(f func(*rollout.Unit)) {
	var visit func(u *rollout.Unit)
	visit = func(u *rollout.Unit) {
		if isLeaf(u) {
			f(u)
		}

		for i := range u.Children {
			visit(&u.Children[i])
		}
	}
	visit(&s.root)
}

func (s *story) find(t *testing.T, d *datadriven.TestData, name string) *rollout.Unit {
	t.Helper()

	if name == "" {
		return &s.root
	}

	var visit func(u *rollout.Unit) *rollout.Unit
	visit = func(u *rollout.Unit) *rollout.Unit {
		if u.Name == name {
			return u
		}

		for i := range u.Children {
			if found := visit(&u.Children[i]); found != nil {
				return found
			}
		}

		return nil
	}

	found := visit(&s.root)
	if found == nil {
		t.Fatalf("%s: there is no unit %q", d.Pos, name)
	}

	return found
}
