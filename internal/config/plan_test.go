package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/health"
	"github.com/spillway-dev/spillway/rollout"
)

var now = time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)

// outdated is a workload that has to roll, changed as a test needs it.
func outdated(name string, change ...func(*Workload)) Workload {
	w := Workload{
		Name: Name{Kind: Deployment, Namespace: "shop", Name: name}, object: emptyWorkload(Deployment),
		Settings: Settings{Tracked: true, Dialect: "spillway.dev/update-on-config-change"},
		Template: Template{Hash: "old", HashName: "spillway.dev/config-hash", Annotated: true},
		Health:   health.Report{Health: rollout.Healthy},
		Hashes:   &Hashes{Desired: "new"},
	}
	for _, c := range change {
		c(&w)
	}
	return w
}

func rolledAt(at time.Time, h rollout.Health) func(*Workload) {
	return func(w *Workload) { w.Records.Roll.At, w.Health.Health = at, h }
}

// lateSince is a roll of this moment that has not come through, by the template that it
// has still.
func lateSince(at time.Time, h rollout.Health) func(*Workload) {
	return func(w *Workload) { rolledAt(at, h)(w); w.Records.Roll.Template = templateDigest(w.object) }
}

func ofKind(obj client.Object) func(*Workload) {
	return func(w *Workload) { w.Kind, w.object = kindOf(obj), obj }
}

func zone(open bool) func(*Workload) {
	return func(w *Workload) { w.Zone = Zone{Group: "ingester", Open: open} }
}

// statefulSet is one of some Pods, of which those of revision v1 are there.
func statefulSet(pods int32, update string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &pods}, Status: appsv1.StatefulSetStatus{CurrentRevision: "v1", UpdateRevision: update}}
}

func current(w *Workload) { w.Template.Hash = "new" }

// told is the plan as sentences: what is written, and who waits why.
func told(workloads []Workload, o Options) string {
	plan := decide(Observed{Now: now, Workloads: workloads}, o)
	var b strings.Builder
	for _, w := range plan.Writes {
		kind := "notes on "
		if w.Rolls {
			kind = "rolls "
		}
		b.WriteString(kind + w.Workload.Name.Name + "\n")
	}
	for _, h := range plan.Holds {
		b.WriteString(string(h.Reason) + ": " + h.Message + "\n")
	}
	return b.String()
}

func TestDecide(t *testing.T) {
	for name, test := range map[string]struct {
		workloads []Workload
		options   Options
		want      string
	}{
		"what has changed rolls": {[]Workload{outdated("a")}, Options{}, "rolls a\n"},
		"what is current does not": {
			[]Workload{outdated("a", current), outdated("b", func(w *Workload) { w.Hashes.Equivalent = []string{"old"} })}, Options{}, "",
		},
		"the predecessor's hash is taken over": {
			[]Workload{outdated("a", func(w *Workload) { w.Hashes.Predecessor = "old" })}, Options{}, "notes on a\n",
		},
		"but not one that we wrote": {
			[]Workload{outdated("a", func(w *Workload) { w.Hashes.Predecessor = "old" }, rolledAt(now.Add(-time.Hour), rollout.Healthy))}, Options{}, "rolls a\n",
		},
		"a baseline says what the hash stands for": {
			[]Workload{outdated("a", func(w *Workload) { w.Records.Baseline = Baseline{"old", "new"} })}, Options{}, "",
		},
		"a baseline of another hash says nothing": {
			[]Workload{outdated("a", func(w *Workload) { w.Records.Baseline = Baseline{"other", "new"} })}, Options{}, "rolls a\n",
		},
		"a pause holds": {
			[]Workload{outdated("a", func(w *Workload) { w.Settings.Paused = true })}, Options{}, "Paused: Deployment a is paused\n",
		},
		"what is missing holds, and is noted": {
			[]Workload{outdated("a", func(w *Workload) {
				w.Hashes, w.Missing = nil, []Missing{{Object: object(Secret, "db")}, {Object: object(ConfigMap, "app"), Key: "k"}}
			})}, Options{},
			"notes on a\nConfigMissing: Deployment a is waiting: Secret db does not exist, ConfigMap app has no key k\n",
		},
		"the budget counts what rolls": {
			[]Workload{outdated("a"), outdated("b", current, rolledAt(now.Add(-time.Minute), rollout.Progressing))}, Options{MaxRolling: 1},
			"BudgetExhausted: Deployment a is queued (position 1): 1 of 1 allowed unavailable (Deployment b is not ready)\n" +
				"Progressing: Deployment b is updating: not ready\n",
		},
		"the budget does not count what is down for other reasons": {
			[]Workload{outdated("a"), outdated("b", current, rolledAt(now.Add(-time.Hour), rollout.Progressing))}, Options{MaxRolling: 1}, "rolls a\n",
		},
		"nor what had its time, which it says": {
			[]Workload{outdated("a"), outdated("b", current, lateSince(now.Add(-time.Hour), rollout.Failed))}, Options{MaxRolling: 1},
			"rolls a\nFailed: Deployment b failed\n",
		},
		"nor what Kubernetes still waits for": {
			[]Workload{outdated("a"), outdated("b", current, lateSince(now.Add(-time.Hour), rollout.Progressing))}, Options{MaxRolling: 1},
			"rolls a\nProgressing: Deployment b is updating: not ready\n",
		},
		"what had its time rolls once its config is another": {
			[]Workload{outdated("a", lateSince(now.Add(-time.Hour), rollout.Failed))}, Options{MaxRolling: 1}, "rolls a\n",
		},
		"a StatefulSet has ten minutes for each Pod": {
			[]Workload{
				outdated("a", current, ofKind(statefulSet(2, "v2")), lateSince(now.Add(-11*time.Minute), rollout.Progressing)),
				outdated("b", current, ofKind(statefulSet(2, "v2")), lateSince(now.Add(-21*time.Minute), rollout.Progressing)),
			}, Options{},
			"Progressing: StatefulSet a is updating: not ready\n" +
				"DeadlineExceeded: StatefulSet b failed: not ready after 20m (progress deadline)\n",
		},
		"one that has come through is no business of the roll": {
			[]Workload{outdated("a", current, ofKind(statefulSet(2, "v1")), lateSince(now.Add(-21*time.Minute), rollout.Progressing))}, Options{}, "",
		},
		"nor is a template that somebody else has changed": {
			[]Workload{outdated("a", current, rolledAt(now.Add(-time.Hour), rollout.Failed))}, Options{}, "",
		},
		"the more important goes first": {
			[]Workload{outdated("a"), outdated("b", func(w *Workload) { w.Settings.Priority = 1 })}, Options{MaxRolling: 1},
			"rolls b\nBudgetExhausted: Deployment a is queued (position 1): 1 of 1 allowed unavailable\n",
		},
		"the rate is kept over restarts": {
			[]Workload{outdated("a"), outdated("b", current, rolledAt(now.Add(-time.Second), rollout.Healthy))}, Options{UpdateRate: 0.1, UpdateBurst: 1},
			"RateLimited: Deployment a is queued (position 1)",
		},
		"a failed write waits for its next try": {
			[]Workload{outdated("a", func(w *Workload) { w.Retry = &Retry{At: now.Add(time.Second), Reason: "it was refused", Write: true} })}, Options{},
			"RetryLater: Deployment a",
		},
		"and is not made with a hash that is not known": {
			[]Workload{outdated("a", func(w *Workload) {
				w.Hashes, w.Change = nil, Change{First: now, Last: now}
				w.Retry = &Retry{At: now.Add(-time.Second), Reason: "it was refused", Write: true}
			})}, Options{CoalesceWindow: time.Second},
			"Coalescing: Deployment a is waiting: its config has just changed",
		},
		"what just changed is collected": {
			[]Workload{outdated("a", func(w *Workload) { w.Hashes, w.Change = nil, Change{First: now, Last: now} })}, Options{CoalesceWindow: time.Second},
			"Coalescing: Deployment a is waiting: its config has just changed, and changes within 1s are one roll\n",
		},
		"a suspended workload takes no place in the budget": {
			[]Workload{
				outdated("a", func(w *Workload) { w.Suspension.Scheduler = true }),
				outdated("b", current, rolledAt(now.Add(-time.Minute), rollout.Progressing)),
			}, Options{MaxRolling: 1},
			"rolls a\nProgressing: Deployment b is updating: not ready\n",
		},
		"a zone gets its hash whatever the budget, which it takes nothing of": {
			[]Workload{
				outdated("a", zone(false)), outdated("b", zone(false)), outdated("c"),
				outdated("d", current, rolledAt(now.Add(-time.Minute), rollout.Progressing), zone(false)),
			}, Options{MaxRolling: 1},
			"rolls c\nrolls a\nrolls b\n",
		},
		"but not while its Pods would move out of turn": {
			[]Workload{outdated("a", zone(true))}, Options{}, "NotHeld: Deployment a is waiting: group ingester does not hold it at its revision\n",
		},
		"nobody who opted out stays suspended": {
			[]Workload{outdated("a", func(w *Workload) { w.Suspension.Scheduler, w.Settings.Tracked = true, false })}, Options{}, "rolls a\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := told(test.workloads, test.options)
			if !strings.HasPrefix(got, test.want) || (test.want == "" && got != "") {
				t.Errorf("(-want +got):\n%s", cmp.Diff(test.want, got))
			}
		})
	}
}

func TestChangesAreCollectedForAWhile(t *testing.T) {
	second := time.Second
	for name, test := range map[string]struct {
		change Change
		want   time.Time
	}{
		"one":                  {Change{First: now, Last: now}, now.Add(second)},
		"another restarts it":  {Change{First: now, Last: now.Add(second / 2)}, now.Add(3 * second / 2)},
		"but not without end":  {Change{First: now, Last: now.Add(time.Minute)}, now.Add(10 * second)},
		"none was seen at all": {Change{}, time.Time{}.Add(second)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.change.settlesAt(second); !got.Equal(test.want) {
				t.Errorf("settles at %s, want %s", got, test.want)
			}
		})
	}
}

func TestAConditionKeepsItsBeginning(t *testing.T) {
	before := now.Add(-time.Hour)
	w := outdated("a", func(w *Workload) {
		w.Missing = []Missing{{Object: object(Secret, "db")}}
		w.Records.Condition = &Condition{Reason: ReasonConfigMissing, Since: before}
	})
	if c := w.condition(now); !c.Since.Equal(before) {
		t.Errorf("since %s, want %s", c.Since, before)
	}
	w.Records.Condition.Reason = ReasonInvalidAnnotation
	if c := w.condition(now); !c.Since.Equal(now) {
		t.Errorf("since %s, want %s", c.Since, now)
	}
}

func TestRecordsAreBounded(t *testing.T) {
	many := make([]string, 100)
	if got := shorten(many); len(got) != maxRecorded+1 || got[maxRecorded] != "…" {
		t.Errorf("%d names are recorded", len(got))
	}
}
