package decision

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/rollout"
)

// TestTenantsDoNotDelayEachOther adds workloads of another namespace with every record and
// setting that its users can write, of which none is to roll now. The same workloads must
// roll as without them.
func TestTenantsDoNotDelayEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{
			UpdateRate: rapid.SampledFrom([]float64{0, 0.001, 1}).Draw(t, "rate"), UpdateBurst: rapid.IntRange(1, 3).Draw(t, "burst"),
			MaxRolling: rapid.IntRange(0, 2).Draw(t, "most"),
		}
		spent := &Budget{Rolled: now.Add(-rapid.SampledFrom([]time.Duration{0, time.Second, time.Hour}).Draw(t, "rolled"))}
		victims := []Workload{outdated("a"), outdated("b"), outdated("c", func(w *Workload) { w.Suspension.Gate = 1 })}
		var hostile []Workload
		for i := range rapid.IntRange(1, 4).Draw(t, "hostile") {
			hostile = append(hostile, drawHostile(t, i))
		}
		alone, together := rollsOf(spent, victims, o), rollsOf(spent, slices.Concat(hostile, victims), o)
		if !slices.Equal(alone, together) {
			t.Fatalf("%v roll, and %v beside another namespace", alone, together)
		}
	})
}

// drawHostile is a workload that cannot roll now, with records as its users like them.
func drawHostile(t *rapid.T, i int) Workload {
	at := rapid.SampledFrom([]time.Time{{}, now.Add(-time.Minute), now, now.AddDate(70, 0, 0)})
	w := outdated(fmt.Sprint("hostile-", i), func(w *Workload) {
		w.Namespace, w.UID = "a-first", types.UID(fmt.Sprint("hostile-", i))
		w.Records.Roll.At = at.Draw(t, "at")
		w.Records.Roll.Template = rapid.SampledFrom([]string{"", workload.TemplateDigest(w.Object)}).Draw(t, "template")
		w.Health.Health = rapid.SampledFrom([]rollout.Health{rollout.Unknown, rollout.Progressing, rollout.Degraded, rollout.Failed}).Draw(t, "health")
		w.Records.Condition = &workload.Condition{Reason: ReasonConfigMissing, Since: at.Draw(t, "since")}
		w.Settings.Priority = rapid.SampledFrom([]int{0, 1 << 30}).Draw(t, "priority")
		w.Suspension.Gate = rapid.IntRange(0, 1).Draw(t, "gate")
		w.Suspension.Freeing, w.Suspension.Known = rapid.Bool().Draw(t, "freeing"), true
	})
	switch rapid.IntRange(0, 3).Draw(t, "because") {
	case 0:
		w.Missing, w.Hashes = []content.Missing{{Object: secretDB}}, nil
	case 1:
		w.Denied, w.Hashes = []string{"forbidden"}, nil
	case 2:
		w.Settings.Paused = true
	default:
		w.Retry = &Retry{At: now.Add(time.Second), Reason: "refused", Write: true}
	}
	return w
}

// rollsOf are the workloads of the shop that roll.
func rollsOf(spent *Budget, workloads []Workload, o Options) []string {
	var names []string
	for _, w := range Decide(Observed{Now: now, Workloads: workloads, Budget: spent}, o).Writes {
		if w.Rolls && w.Workload.Namespace == "shop" {
			names = append(names, w.Workload.Name.Name)
		}
	}
	return names
}

func TestTheBudgetIsWhatTheManagerRolled(t *testing.T) {
	a := func(w *Workload) { w.UID = "a" }
	rolling := func(w *Workload) {
		current(w)
		w.UID, w.Rolled, w.Health.Health = "b", now.Add(-time.Minute), rollout.Progressing
	}
	o := Observed{Now: now, Workloads: []Workload{outdated("a", a), outdated("b", rolling), outdated("z", zone(false))}, Budget: &Budget{}}
	options := Options{UpdateRate: 0.1, UpdateBurst: 3, MaxRolling: 2}
	after := Decide(o, options).Budget
	if len(after.Rolling) != 2 || !after.Rolling["a"].Equal(now) || !after.Rolling["b"].Equal(now.Add(-time.Minute)) {
		t.Errorf("rolling: %v", after.Rolling)
	}
	if want := now.Add(10 * time.Second); !after.Rolled.Equal(want) { // two rolls now are as many as one in ten seconds
		t.Errorf("rolled as of %s, want %s", after.Rolled, want)
	}
	if quiet := Decide(Observed{Now: now, Budget: after}, options).Budget; quiet != after {
		t.Errorf("nothing rolls, and the record changes to %v", quiet)
	}
}

func TestARecordOfTheFutureIsBounded(t *testing.T) {
	future := now.AddDate(70, 0, 0)
	b := (&Budget{Rolled: future, Rolling: map[types.UID]time.Time{"a": future}}).Bounded(now, Options{UpdateRate: 1, UpdateBurst: 3})
	if !b.Rolled.Equal(now.Add(2*time.Second)) || !b.Rolling["a"].Equal(now) {
		t.Errorf("%+v", b)
	}
}

// What the users of one namespace change again and again, with whatever priority, keeps no other one waiting.
func TestNamespacesTakeTurns(t *testing.T) {
	for name, o := range map[string]Options{"rate": {UpdateRate: 1, UpdateBurst: 1}, "rolling": {MaxRolling: 1}} {
		t.Run(name, func(t *testing.T) {
			spent, since := &Budget{}, now.Add(-time.Hour)
			busy := func(namespace string, priority int) func(w *Workload) {
				return func(w *Workload) {
					w.Namespace, w.Settings.Priority = namespace, priority
					w.Change = Change{First: since, Last: since}
				}
			}
			var rolled []string
			for second := range 8 {
				at := now.Add(time.Duration(second) * time.Second)
				var workloads []Workload
				for i := range 30 {
					workloads = append(workloads, outdated(fmt.Sprintf("w%02d", i), busy("loud", 1<<30)))
				}
				workloads = append(workloads, outdated("x", busy("quiet", 0)), outdated("y", busy("quiet", 1)))
				plan := Decide(Observed{Now: at, Workloads: workloads, Budget: spent}, o)
				spent = plan.Budget
				clear(spent.Rolling)
				for i := range plan.Writes {
					rolled = append(rolled, plan.Writes[i].Workload.Namespace+"/"+plan.Writes[i].Workload.Name.Name)
				}
			}
			want := "loud/w00 quiet/y loud/w00 quiet/y loud/w00 quiet/y loud/w00 quiet/y"
			if got := strings.Join(rolled, " "); got != want {
				t.Errorf("rolled %s, want %s", got, want)
			}
			if got, want := share(spent), "namespaces take turns: loud had 4 of the last 8"; got != want {
				t.Errorf("says %q, want %q", got, want)
			}
			seen := Observed{Budget: spent}
			limits := &Limits{UpdateRate: o.UpdateRate, MaxRolling: o.MaxRolling, Turns: &Turns{Rolls: 8, Own: 4, Most: "loud", MostRolls: 4}}
			if diff := cmp.Diff(limits, seen.LimitsFor("quiet", rollout.ReasonRate, o)); diff != "" {
				t.Error(diff)
			}
			if seen.LimitsFor("quiet", rollout.ReasonPaused, o) != nil || seen.LimitsFor("quiet", rollout.ReasonRate, Options{}) != nil {
				t.Error("it has limits, and waits for none")
			}
		})
	}
}
