package prove_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/prove"
	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/simulate/world"
	"github.com/spillway-dev/spillway/internal/source"
)

// scenarios are those of package simulate, which are compared with a real control plane there.
const scenarios = "../simulate/testdata"

func objects(t *testing.T, documents []source.Document, err error) []*unstructured.Unstructured {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	all := make([]*unstructured.Unstructured, 0, len(documents))
	for _, d := range documents {
		all = append(all, d.Object)
	}
	return all
}

// scenario returns a change of a scenario, and the world in which it is made.
func scenario(t *testing.T, name string) prove.Options {
	t.Helper()
	o := prove.Options{Failures: 1, Options: simulate.Options{
		Now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC), Namespace: "default", Nodes: 3,
		Readiness: world.Readiness{Default: 30 * time.Second}, Stop: new(time.Duration),
		Config: config.Options{Options: decision.Options{CoalesceWindow: time.Second, UpdateBurst: 100}},
	}}
	if name == "policy-returns" {
		o.Config.PinNamespaces = pin.In()
	}
	from := filepath.Join(scenarios, name)
	if _, err := os.Stat(from); err != nil {
		from = filepath.Join("testdata", name)
	}
	base, err := source.Read(nil, filepath.Join(from, "base.yaml"))
	o.Base = objects(t, base, err)
	change, err := source.Read(nil, filepath.Join(from, "change.yaml"))
	o.Change = objects(t, change, err)
	return o
}

func explore(t *testing.T, o prove.Options) *prove.Report {
	t.Helper()
	r, err := prove.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Complete {
		t.Errorf("the exploration is not complete, after %d states", r.States)
	}
	return r
}

// read returns the objects of manifests.
func read(t *testing.T, manifests string) []*unstructured.Unstructured {
	t.Helper()
	documents, err := source.Read(strings.NewReader(manifests), source.Stdin)
	return objects(t, documents, err)
}

// broken are the rules that are broken, in their order, each once.
func broken(r *prove.Report) []string {
	var all []string
	for i := range r.Counterexamples {
		all = append(all, r.Counterexamples[i].Rule)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// found is what an exploration finds of scenarios in which the change itself is at fault: it is
// paused, fails or waits for ever, or a bad version of it gets everywhere. Of all others it finds nothing.
var found = map[string][]string{
	"config-budget":          {prove.RuleBadStops},
	"config-missing-secret":  {prove.RuleEnds},
	"config-paused":          {prove.RuleEnds},
	"config-priority":        {prove.RuleBadStops},
	"fleet-checks":           {prove.RuleBadStops, prove.RuleEnds},
	"fleet-gate":             {prove.RuleBadStops},
	"fleet-overrides":        {prove.RuleBadStops},
	"fleet-removal-held":     {prove.RuleEnds},
	"plan-failing-step":      {prove.RuleEnds},
	"plan-immutable":         {prove.RuleEnds},
	"policy-paused":          {prove.RuleEnds},
	"policy-window-closed":   {prove.RuleEnds},
	"scaling-min-time-unset": {prove.RuleEnds},
	"zones-paused-group":     {prove.RuleEnds},
	"zones-paused-zone":      {prove.RuleEnds},
}

// TestEveryFailureOfEveryScenario explores all scenarios: whatever fails at whichever moment, no budget,
// zone or stage is violated, and whatever waits names what to do.
func TestEveryFailureOfEveryScenario(t *testing.T) {
	t.Parallel()
	bases, err := filepath.Glob(filepath.Join(scenarios, "*", "base.yaml"))
	own, _ := filepath.Glob("testdata/*/base.yaml")
	if err != nil || len(bases) < 40 || len(own) < 2 {
		t.Fatalf("%d scenarios, and %d: %v", len(bases), len(own), err)
	}
	for _, base := range append(bases, own...) {
		name := filepath.Base(filepath.Dir(base))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := scenario(t, name)
			r := explore(t, o)
			t.Logf("%d units, %d states, %d transitions, %v", r.Units, r.States, r.Transitions, r.Failures)
			if got := broken(r); !slices.Equal(got, found[name]) {
				t.Errorf("broken rules %q, want %q", got, found[name])
				for i := range r.Counterexamples {
					t.Logf("%+v", r.Counterexamples[i])
				}
			}
		})
	}
}

// reach is how far the versions of a rollout get that are bad in either way.
func reach(r *prove.Report, rollout string) (never, later int) {
	for _, of := range r.Reach {
		switch {
		case of.Rollout != rollout:
		case of.Bad == prove.NeverReady:
			never = of.Reached
		default:
			later = of.Reached
		}
	}
	return never, later
}

func TestHowFarABadVersionGets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scenario, rollout string
		never, later      int
	}{
		{"config-budget", "config of namespace default", 5, 5},
		{"policy-stages", "configpolicy/careful", 1, 1},
		{"zones-order", "rolloutgroup/ingester", 1, 2},
		{"fleet-canary", "module/app", 1, 2},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			t.Parallel()
			o := scenario(t, c.scenario)
			o.Failures = 0
			if never, later := reach(explore(t, o), c.rollout); never != c.never || later != c.later {
				t.Errorf("%d and %d units, want %d and %d", never, later, c.never, c.later)
			}
		})
	}
}

const onePolicy = `
{apiVersion: spillway.dev/v1alpha1, kind: ConfigPolicy, metadata: {name: careful, namespace: default}, spec: {stages: [{name: all}]}}
`

// TestWhatPreventsIt: a setting is named if the rule is not broken with it, and of several the first.
func TestWhatPreventsIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ scenario, add, action string }{
		{"fleet-gate", "", "set soakSeconds: 300 in the first stage of module/app"},
		{"config-budget", "", "add a ConfigPolicy to namespace default"},
		{"config-budget", onePolicy, "begin spec.stages of configpolicy/careful"}, // to soak is not enough
		{"config-paused", "", ""},
	} {
		t.Run(c.scenario+c.action, func(t *testing.T) {
			t.Parallel()
			o := scenario(t, c.scenario)
			o.Failures = 0
			if c.add != "" {
				o.Base = append(o.Base, read(t, c.add)...)
			}
			r := explore(t, o)
			if err := prove.Prevent(t.Context(), o, r); err != nil {
				t.Fatal(err)
			}
			if first := r.Counterexamples[0]; (first.Verified != "") != (c.action != "") || !strings.HasPrefix(first.Action, c.action) {
				t.Errorf("%q, explored: %q; want %q", first.Action, first.Verified, c.action)
			}
		})
	}
}

// TestTheSameTwice: an exploration is deterministic.
func TestTheSameTwice(t *testing.T) {
	t.Parallel()
	first, second := explore(t, scenario(t, "zones-order")), explore(t, scenario(t, "zones-order"))
	if first.States != second.States || first.Transitions != second.Transitions || !slices.Equal(broken(first), broken(second)) {
		t.Errorf("%d states, then %d; %d transitions, then %d", first.States, second.States, first.Transitions, second.Transitions)
	}
}

// TestTimeEndsAnExploration: what is not complete says so.
func TestTimeEndsAnExploration(t *testing.T) {
	t.Parallel()
	o := scenario(t, "zones-order")
	o.Over = func() bool { return true }
	r, err := prove.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Complete {
		t.Error("an exploration that was not made counts as complete")
	}
}

func TestRulesOfAUser(t *testing.T) {
	t.Parallel()
	rules, err := prove.ParseRules([]byte(`
rules:
- name: quorum
  holds: units.filter(u, u.ready).size() >= units.size() - 1
  message: two Pods are down together
- name: canary-first
  holds: failures > 0 || units.exists(u, !u.updated)|| units.all(u, u.ready || u.updated)
`))
	if err != nil {
		t.Fatal(err)
	}
	o := scenario(t, "zones-order")
	o.Rules = rules
	r := explore(t, o)
	if len(r.Counterexamples) != 1 || r.Counterexamples[0].Rule != "quorum" {
		t.Fatalf("found %+v, want that the rule quorum is broken", r.Counterexamples)
	}
	c := r.Counterexamples[0]
	failures := slices.DeleteFunc(slices.Clone(c.Timeline), func(l prove.Line) bool { return !l.Failure })
	if c.Sentence != "two Pods are down together" || len(failures) != 1 {
		t.Errorf("the counterexample is %+v", c)
	}
}

func TestRulesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"rules: [{name: x, holds: units.size()}]":                         "rules[0].holds",
		"rules: [{holds: \"true\"}]":                                      "rules[0].name: required",
		"rules: [{name: max-unavailable, holds: \"true\"}]":               "is the name of another rule",
		"rules: [{name: x, holds: \"true\"}, {name: x, holds: \"true\"}]": "rules[1].name",
		"rules: []":                             "none found",
		"rule: []":                              "unknown field",
		"rules: [{name: x, holds: \"unit.x\"}]": "undeclared reference",
	} {
		if _, err := prove.ParseRules([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
