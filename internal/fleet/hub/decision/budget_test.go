package decision_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/ring"
)

const many = `strategy: Incremental, rollout: {maxUnreadyClusters: 9}`

// shared adds a budget to what was observed, with what modules have noted in it: "Kind/name cluster ...", each cluster
// with "!" if it has failed there; "depends=a" says what the module depends on, "old" that it has noted that for another
// generation, and "missing" that it has noted nothing.
func shared(t *testing.T, o *model.Observed, spec string, noted ...string) {
	t.Helper()
	b := model.Budget{Name: "b", UID: "u", ResourceVersion: "1", Generation: 3}
	if err := yaml.UnmarshalStrict([]byte("{"+spec+"}"), &b.Spec); err != nil {
		t.Fatal(err)
	}
	for i := range o.Records {
		o.Records[i].UID, o.Records[i].Generation, o.Records[i].ResourceVersion = types.UID("of "+o.Records[i].Cluster), 1, "1"
	}
	o.Sharers = append(o.Sharers, model.Sharer{Kind: model.KindModule, Name: app})
	for _, line := range noted {
		words := strings.Fields(line)
		kind, name, _ := strings.Cut(words[0], "/")
		m := spillway.BudgetModule{Kind: kind, Name: name, ObservedGeneration: b.Generation}
		missing := false
		for _, word := range words[1:] {
			on, depends := strings.CutPrefix(word, "depends=")
			switch {
			case depends:
				m.DependsOn = append(m.DependsOn, on)
			case word == "old":
				m.ObservedGeneration--
			case word == "missing":
				missing = true
			default:
				c := spillway.BudgetCluster{Name: strings.TrimSuffix(word, "!"), Failed: strings.HasSuffix(word, "!")}
				c.UID, c.Generation, c.ResourceVersion = types.UID("of "+c.Name), 1, "1"
				m.Clusters = append(m.Clusters, c)
			}
		}
		if !missing {
			b.Modules = append(b.Modules, m)
		}
		if name != app {
			o.Sharers = append(o.Sharers, model.Sharer{Kind: kind, Name: name})
		}
	}
	o.Budgets = append(o.Budgets, b)
}

// done is what a plan writes: moves that it permits, and what it notes.
func done(p *decision.Plan, o *model.Observed) string {
	var words []string
	if p.Permits {
		for _, m := range p.Status.Moves {
			word := "permits " + m.Cluster
			if m.Repair {
				word += " (repair)"
			}
			words = append(words, word)
		}
	}
	for i := range p.Writes {
		w := &p.Writes[i]
		switch {
		case w.Act != decision.Note:
			words = append(words, strings.ToLower(string(w.Act))+" "+w.Target())
		case w.Note == nil:
			words = append(words, "leaves "+w.Budget.Name)
		default:
			words = append(words, strings.TrimSpace("notes "+strings.Join(clustersOf(w.Note), " ")))
		}
	}
	return strings.Join(words, ", ")
}

func clustersOf(m *spillway.BudgetModule) []string {
	var names []string
	for _, c := range m.Clusters {
		name := c.Name
		if c.Failed {
			name += "!"
		}
		names = append(names, name)
	}
	return names
}

func TestSharedBudgets(t *testing.T) {
	const (
		mine  = "Module/" + app
		other = "Module/other"
	)
	for name, test := range map[string]struct {
		clusters, budget string
		noted            []string
		does, says       string
	}{
		"what is to move is noted first": {
			"a v1 up\nb v1 up", `maxClusters: 1`, []string{mine},
			"notes a", "",
		},
		"and permitted then; what is left waits for it": {
			"a v1 up\nb v1 up", `maxClusters: 1`, []string{mine + " a"},
			"permits a", "b is waiting: ClusterBudget b: 1 of 1 clusters allowed updating (a: Module app)",
		},
		"another module has the place": {
			"a v1 up\nb v1 up", `maxClusters: 1`, []string{mine, other + " b"},
			"notes b", "a is waiting: ClusterBudget b: 1 of 1 clusters allowed updating (b: Module other)",
		},
		"of the other kind": {
			"a v1 up", `maxClusters: 1`, []string{mine, "BootstrapModule/app z!"},
			"", "a is waiting: ClusterBudget b: 1 of 1 clusters allowed updating (z: BootstrapModule app has failed)",
		},
		"each group has its own": {
			"a v1 up region=eu\nb v1 up region=us\nc v1 up", `maxClusters: 1, groupBy: {labelKey: region}`, []string{mine, other + " a"},
			"notes a b c", "",
		},
		"and nothing else of it moves": {
			"a v1 up region=eu\nb v1 up region=us\nc v1 up region=eu", `maxClusters: 1, groupBy: {labelKey: region}`, []string{mine, other + " c"},
			"notes b c", "a is waiting: ClusterBudget b: 1 of 1 clusters allowed updating with region=eu (c: Module other)",
		},
		"an unknown cluster is one of every group": {
			"a v1 up region=eu", `maxClusters: 1, groupBy: {labelKey: region}`, []string{mine, other + " gone"},
			"", "a is waiting: ClusterBudget b: 1 of 1 clusters allowed updating with region=eu (gone: Module other)",
		},
		"clusters that it does not select": {
			"a v1 up region=eu\nb v1 up region=us", `maxClusters: 1, clusters: {matchLabels: {region: us}}`, []string{mine, other + " b"},
			"notes b", "",
		},
		"two modules on a cluster": {
			"a v1 up\nb v1 up", `maxModulesPerCluster: 1`, []string{mine, other + " a"},
			"notes b", "a is waiting: ClusterBudget b: 1 of 1 allowed updating on it (Module other)",
		},
		"also if the other has failed": {
			"a v1 up", `maxModulesPerCluster: 1`, []string{mine, other + " a!"},
			"", "a is waiting: ClusterBudget b: 1 of 1 allowed updating on it (Module other has failed)",
		},
		"but not where this one is down, maybe by that": {
			"a v1 failed", `maxModulesPerCluster: 1, maxClusters: 1`, []string{mine, other + " a! b"},
			"notes a", "",
		},
		"two at a time still are none": {
			"a v1 failed", `maxModulesPerCluster: 1`, []string{mine, other + " a"},
			"notes a!", "a is waiting: ClusterBudget b: 1 of 1 allowed updating on it (Module other)",
		},
		"what depends on it does not keep it": {
			"a v1 up", `maxModulesPerCluster: 1`, []string{mine, other + " a depends=app"},
			"notes a", "",
		},
		"nor by another that is up": {
			"a v1 up", `maxModulesPerCluster: 2`, []string{mine, other + " a depends=middle", "Module/middle a depends=app", "Module/more a"},
			"notes a", "",
		},
		"one that has noted nothing": {
			"a v1 up", `maxClusters: 9`, []string{mine, other + " missing"},
			"", "a is waiting: ClusterBudget b: Module other has not noted yet which clusters it is updating",
		},
		"nor for this generation": {
			"a v1 up", `maxClusters: 9`, []string{mine, other + " old"},
			"", "a is waiting: ClusterBudget b: Module other has not noted yet which clusters it is updating",
		},
		"which it does itself": {
			"a v1 up\nb v2 updating @1s", `maxClusters: 1`, []string{mine + " old"},
			"notes b", "",
		},
		"what began before the budget counts": {
			"a v1 up\nb v2 updating @1s", `maxClusters: 1`, []string{other},
			"notes b", "",
		},
		"it is given back once it is ready": {
			"a v2 up\nb v1 up", `maxClusters: 1`, []string{mine + " a@0"},
			"notes", "",
		},
		"not by an older view": {
			"a v2 up", `maxClusters: 1`, []string{mine + " a@9"},
			"", "",
		},
		"which permits nothing either": {
			"a v1 up", `maxClusters: 1`, []string{mine + " a@9"},
			"", "",
		},
		"nor before nothing can come of it": {
			"a v2 up", `maxClusters: 1`, []string{mine + " a"},
			"fence a", "",
		},
		"what has failed keeps it": {
			"a v2 failed @1m\nb v1 up", `maxClusters: 1`, []string{mine + " a@0"},
			"notes a!", "",
		},
		"a cluster that has joined needs none": {
			"a new", `maxClusters: 1, maxModulesPerCluster: 1`, []string{mine, other + " a"},
			"permits a", "",
		},
		"what is mistaken lets nothing move": {
			"a v1 up\nb v1 up", `maxClusters: 1, modules: {matchExpressions: [{key: x, operator: In}]}`, []string{mine},
			"", "a is waiting: ClusterBudget b: spec.modules: values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty; correct it",
		},
		"a budget of others": {
			"a v1 up", `maxClusters: 1, modules: {matchLabels: {x: y}}`, []string{other + " a b"},
			"permits a", "",
		},
		"one that is others' by now": {
			"a v1 up", `maxClusters: 1, modules: {matchLabels: {x: y}}`, []string{mine + " a@0"},
			"leaves b", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := planned(t, many, test.clusters)
			o.Module.Status.TargetRevision = revisionOf("v2")
			var noted []string
			for _, line := range test.noted {
				noted = append(noted, strings.NewReplacer("@0", "", "@9", "").Replace(line))
			}
			shared(t, &o, test.budget, noted...)
			for i := range o.Budgets[0].Modules {
				for j := range o.Budgets[0].Modules[i].Clusters {
					switch c := &o.Budgets[0].Modules[i].Clusters[j]; {
					case strings.Contains(strings.Join(test.noted, " "), c.Name+"@0"):
						c.Generation = 0
					case strings.Contains(strings.Join(test.noted, " "), c.Name+"@9"):
						c.Generation, c.ResourceVersion = 9, "9"
					}
				}
			}
			p := decision.Decide(o)
			if is := done(&p, &o); is != test.does {
				t.Errorf("it %q, want %q", is, test.does)
			}
			if is := said(&p); test.says != "" && !strings.Contains(is, test.says) {
				t.Errorf("it says\n%s\nwant\n%s", is, test.says)
			}
		})
	}
}

// A cluster that was down takes no place from others. If it is up before it is moved, it must have one.
func TestARepairThatIsNoneAnyMoreTakesNoPlace(t *testing.T) {
	o := planned(t, many, "a v1 up\nb v1 up")
	o.Module.Status.TargetRevision = revisionOf("v2")
	shared(t, &o, `maxClusters: 1`, "Module/app a", "Module/other b")
	p := decision.Decide(o)
	if is := done(&p, &o); is != "fence a" {
		t.Fatal(is)
	}
	o.Records[0].Fence = "1"
	p = decision.Decide(o)
	if is := done(&p, &o); is != "notes" {
		t.Error(is)
	}
}

// A module that is gone leaves a budget once its clusters are settled, and not before.
func TestAModuleThatIsGoneLeavesItsBudgets(t *testing.T) {
	for clusters, want := range map[string]string{
		"a":              "leaves b",
		"a v2 updating":  "",
		"a v2 failed":    "leaves b",
		"b v2 updating":  "leaves b", // its cluster is gone, too
		"a v2 up":        "leaves b",
		"a v2 up noted":  "fence a",
		"a v2 failed at": "leaves b",
	} {
		t.Run(clusters, func(t *testing.T) {
			state := strings.NewReplacer(" noted", "", " at", "").Replace(clusters)
			o := planned(t, many, state)
			shared(t, &o, `maxClusters: 1`, "Module/app a")
			o.Sharers = nil
			if !strings.Contains(clusters, "noted") {
				o.Budgets[0].Modules[0].Clusters[0].Generation = 0
			}
			p := decision.Leave(o)
			if is := done(&p, &o); is != want {
				t.Errorf("it %q, want %q", is, want)
			}
		})
	}
}

// A budget whose status cannot be written is said, and lets nothing move.
func TestABudgetThatCannotBeWritten(t *testing.T) {
	o := planned(t, many, "a v1 up")
	shared(t, &o, `maxClusters: 1`, "Module/app")
	o.Refusals = ring.Refusals{"ClusterBudget b": {At: noon.Add(60e9), Reason: "forbidden"}}
	p := decision.Decide(o)
	if is, want := said(&p), "a is waiting: ClusterBudget b: it cannot be noted which clusters are updated: forbidden"; !strings.Contains(is, want) || !p.Wake.Equal(noon.Add(60e9)) {
		t.Errorf("%s; it looks again at %s", is, p.Wake)
	}
}
