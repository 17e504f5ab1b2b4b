package decision

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/health"
	"github.com/spillway-dev/spillway/rollout"
)

var now = time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)

var (
	secretDB     = content.Object{Kind: content.Secret, Namespace: "shop", Name: "db"}
	configMapApp = content.Object{Kind: content.ConfigMap, Namespace: "shop", Name: "app"}
)

// outdated is a workload that has to roll, changed as a test needs it.
func outdated(name string, change ...func(*Workload)) Workload {
	w := Workload{Health: health.Report{Health: rollout.Healthy}, Workload: workload.Workload{
		Name:     workload.Name{Kind: workload.Deployment, Namespace: "shop", Name: name},
		Object:   &appsv1.Deployment{},
		Settings: workload.Settings{Tracked: true, Dialect: "spillway.dev/update-on-config-change"},
		Template: workload.Template{Hash: "old", HashName: "spillway.dev/config-hash", Annotated: true},
		Hashes:   &content.Hashes{Desired: "new"},
	}}
	for _, c := range change {
		c(&w)
	}
	return w
}

func rolledAt(at time.Time, h rollout.Health) func(*Workload) {
	return func(w *Workload) { w.Records.Roll.At, w.Rolled, w.Health.Health = at, at, h }
}

// lateSince is a roll of this time that has not completed, by the template that it
// still has.
func lateSince(at time.Time, h rollout.Health) func(*Workload) {
	return func(w *Workload) { rolledAt(at, h)(w); w.Records.Roll.Template = workload.TemplateDigest(w.Object) }
}

func ofKind(obj client.Object) func(*Workload) {
	return func(w *Workload) { w.Kind, w.Object = workload.KindOf(obj), obj }
}

func zone(open bool) func(*Workload) {
	return func(w *Workload) { w.Zone = workload.Zone{Group: "ingester", Open: open} }
}

// statefulSet is one of some Pods, those that exist being at revision v1.
func statefulSet(pods int32, update string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &pods}, Status: appsv1.StatefulSetStatus{CurrentRevision: "v1", UpdateRevision: update}}
}

// kept has one Pod at the present revision, and a strategy that replaces no other.
func kept(set *appsv1.StatefulSet, s appsv1.StatefulSetUpdateStrategy) *appsv1.StatefulSet {
	set.Spec.UpdateStrategy, set.Status.Replicas, set.Status.UpdatedReplicas = s, *set.Spec.Replicas, 1
	return set
}

func partition(n int32) appsv1.StatefulSetUpdateStrategy {
	return appsv1.StatefulSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &n}}
}

func current(w *Workload) { w.Template.Hash = "new" }

func in(namespace string) func(*Workload) {
	return func(w *Workload) { w.Namespace = namespace }
}

// freeing is a workload that was released, of which these Pods are still suspended.
func freeing(waiting ...workload.WaitingPod) func(*Workload) {
	return func(w *Workload) {
		w.Suspension = workload.Suspension{Freeing: true, Seen: true, Known: true, Waiting: waiting}
	}
}

// text is the plan as sentences: what is written, and what waits why.
func text(workloads []Workload, o Options) string {
	return textOf(Observed{Now: now, Workloads: workloads}, o)
}

// textOf is the plan of what was observed as sentences.
func textOf(observed Observed, o Options) string {
	plan := Decide(observed, o)
	var b strings.Builder
	for _, w := range plan.Writes {
		kind := "records on "
		switch {
		case w.Rolls:
			kind = "rolls "
		case len(w.Deletes) > 0:
			kind = fmt.Sprintf("deletes %d Pods of ", len(w.Deletes))
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
		"wave's hash is adopted": {
			[]Workload{outdated("a", func(w *Workload) { w.Hashes.Wave = "old" })}, Options{}, "records on a\n",
		},
		"but not one that the ring wrote": {
			[]Workload{outdated("a", func(w *Workload) { w.Hashes.Wave = "old" }, rolledAt(now.Add(-time.Hour), rollout.Healthy))}, Options{}, "rolls a\n",
		},
		"a baseline says what the hash stands for": {
			[]Workload{outdated("a", func(w *Workload) { w.Records.Baseline = workload.Baseline{Template: "old", Scope: "new"} })}, Options{}, "",
		},
		"a baseline of another hash says nothing": {
			[]Workload{outdated("a", func(w *Workload) { w.Records.Baseline = workload.Baseline{Template: "other", Scope: "new"} })}, Options{}, "rolls a\n",
		},
		"a pause holds": {
			[]Workload{outdated("a", func(w *Workload) { w.Settings.Paused = true })}, Options{}, "Paused: Deployment a is paused\n",
		},
		"what is missing holds, and is recorded": {
			[]Workload{outdated("a", func(w *Workload) {
				w.Hashes, w.Missing = nil, []content.Missing{{Object: secretDB}, {Object: configMapApp, Key: "k"}}
			})}, Options{},
			"records on a\nConfigMissing: Deployment a is waiting: Secret db not found, ConfigMap app has no key k\n",
		},
		"the budget counts what rolls": {
			[]Workload{outdated("a"), outdated("b", current, rolledAt(now.Add(-time.Minute), rollout.Progressing))}, Options{MaxRolling: 1},
			"BudgetExhausted: Deployment a is queued (position 1): 1 of 1 allowed unavailable (Deployment b is not ready)\n" +
				"Progressing: Deployment b is updating: not ready\n",
		},
		"the budget does not count what is down for other reasons": {
			[]Workload{outdated("a"), outdated("b", current, rolledAt(now.Add(-time.Hour), rollout.Progressing))}, Options{MaxRolling: 1}, "rolls a\n",
		},
		"nor what exceeded its time, which is reported": {
			[]Workload{outdated("a"), outdated("b", current, lateSince(now.Add(-time.Hour), rollout.Failed))}, Options{MaxRolling: 1},
			"rolls a\nFailed: Deployment b failed\n",
		},
		"nor what Kubernetes still waits for": {
			[]Workload{outdated("a"), outdated("b", current, lateSince(now.Add(-time.Hour), rollout.Progressing))}, Options{MaxRolling: 1},
			"rolls a\nProgressing: Deployment b is updating: not ready\n",
		},
		"what exceeded its time rolls once its config changes": {
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
		"one that has completed no longer shows the roll": {
			[]Workload{outdated("a", current, ofKind(statefulSet(2, "v1")), lateSince(now.Add(-21*time.Minute), rollout.Progressing))}, Options{}, "",
		},
		"nor does a template that another client has changed": {
			[]Workload{outdated("a", current, rolledAt(now.Add(-time.Hour), rollout.Failed))}, Options{}, "",
		},
		"the higher priority rolls first": {
			[]Workload{outdated("a"), outdated("b", func(w *Workload) { w.Settings.Priority = 1 })}, Options{MaxRolling: 1},
			"rolls b\nBudgetExhausted: Deployment a is queued (position 1): 1 of 1 allowed unavailable\n",
		},
		"the rate is kept over restarts": {
			[]Workload{outdated("a"), outdated("b", current, rolledAt(now.Add(-time.Second), rollout.Healthy))}, Options{UpdateRate: 0.1, UpdateBurst: 1},
			"RateLimited: Deployment a is queued (position 1)",
		},
		"a failed write waits for its retry": {
			[]Workload{outdated("a", func(w *Workload) { w.Retry = &Retry{At: now.Add(time.Second), Reason: "it was refused", Write: true} })}, Options{},
			"RetryLater: Deployment a",
		},
		"and is not made with a hash that is not known": {
			[]Workload{outdated("a", func(w *Workload) {
				w.Hashes, w.Change = nil, Change{First: now, Last: now}
				w.Retry = &Retry{At: now.Add(-time.Second), Reason: "it was refused", Write: true}
			})}, Options{CoalesceWindow: time.Second},
			"Coalescing: Deployment a is waiting: its config changed",
		},
		"what just changed is collected": {
			[]Workload{outdated("a", func(w *Workload) { w.Hashes, w.Change = nil, Change{First: now, Last: now} })}, Options{CoalesceWindow: time.Second},
			"Coalescing: Deployment a is waiting: its config changed; changes within 1s become one roll\n",
		},
		"a suspended workload takes no place in the budget": {
			[]Workload{
				outdated("a", func(w *Workload) { w.Suspension.Scheduler = true }),
				outdated("b", current, rolledAt(now.Add(-time.Minute), rollout.Progressing)),
			}, Options{MaxRolling: 1},
			"rolls a\nProgressing: Deployment b is updating: not ready\n",
		},
		"Pods that wait for a user are reported": {
			[]Workload{
				outdated("a", current, ofKind(kept(statefulSet(3, "v2"), appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}))),
				outdated("b", current, ofKind(kept(statefulSet(3, "v2"), partition(2)))),
				outdated("c", current, ofKind(&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Paused: true}, Status: appsv1.DeploymentStatus{Replicas: 2}})),
				outdated("z", current, ofKind(kept(statefulSet(3, "v2"), partition(2))), zone(false), func(w *Workload) {
					w.Object.SetLabels(map[string]string{"rollout-group": "ingester"})
				}),
				outdated("o"),
			}, Options{MaxRolling: 1},
			"rolls o\n" +
				"PodsKept: StatefulSet a is waiting: 2 of 3 Pods run an earlier revision: its update strategy is OnDelete; delete them\n" +
				"PodsKept: StatefulSet b is waiting: 2 of 3 Pods run an earlier revision: its partition is 2; lower it\n" +
				"PodsKept: Deployment c is waiting: 2 of 2 Pods run an earlier revision: its rollout is paused (spec.paused); resume it\n",
		},
		"nor while its config is missing": {
			[]Workload{
				outdated("a"),
				outdated("b", func(w *Workload) {
					w.Suspension.Scheduler, w.Hashes, w.Missing = true, nil, []content.Missing{{Object: secretDB}}
				}),
			}, Options{MaxRolling: 1},
			"rolls a\nrecords on b\nConfigMissing: Deployment b is waiting: Secret db not found; its Pods are not scheduled\n",
		},
		"nor while it is paused": {
			[]Workload{
				outdated("a"),
				outdated("b", func(w *Workload) { w.Suspension.Scheduler, w.Settings.Paused = true, true }),
			}, Options{MaxRolling: 1},
			"rolls a\nPaused: Deployment b is paused\n",
		},
		"nor while its write waits for its retry": {
			[]Workload{
				outdated("a"),
				outdated("b", func(w *Workload) {
					w.Suspension.Scheduler, w.Retry = true, &Retry{At: now.Add(time.Second), Reason: "it was refused", Write: true}
				}),
			}, Options{MaxRolling: 1},
			"rolls a\nRetryLater: Deployment b",
		},
		"each namespace has a budget of its own, for all of its workloads": {
			[]Workload{outdated("a", in("first")), outdated("b", in("first")), outdated("c", in("second")), outdated("d", in("second")), outdated("e", in("third"))},
			Options{MaxRollingPerNamespace: 1},
			"rolls a\nrolls c\nrolls e\n" +
				"BudgetExhausted: Deployment b is queued (position 1): 1 of 1 allowed unavailable in first\n" +
				"BudgetExhausted: Deployment d is queued (position 1): 1 of 1 allowed unavailable in second\n",
		},
		"a pause does not hide that a workload is rolling": {
			[]Workload{outdated("a", current, rolledAt(now.Add(-time.Minute), rollout.Progressing), func(w *Workload) { w.Settings.Paused = true })}, Options{},
			"Progressing: Deployment a is updating: not ready\n",
		},
		"nor that it exceeded its time": {
			[]Workload{outdated("a", current, ofKind(statefulSet(2, "v2")), lateSince(now.Add(-21*time.Minute), rollout.Progressing), func(w *Workload) { w.Settings.Paused = true })}, Options{},
			"DeadlineExceeded: StatefulSet a failed: not ready after 20m (progress deadline)\n",
		},
		"nor a failed write": {
			[]Workload{outdated("a", current, rolledAt(now.Add(-time.Minute), rollout.Progressing), func(w *Workload) { w.Retry = &Retry{At: now.Add(time.Second), Reason: "it was refused"} })}, Options{},
			"Progressing: Deployment a is updating: not ready\n",
		},
		"a workload is released though its hash is the present one": {
			[]Workload{outdated("a", current, func(w *Workload) { w.Suspension.Scheduler = true })}, Options{}, "rolls a\n",
		},
		"what is not permitted holds, and is recorded": {
			[]Workload{outdated("a", func(w *Workload) { w.Hashes, w.Denied = nil, []string{"no permission to read Secret db"} })}, Options{},
			"records on a\nNotPermitted: Deployment a is waiting: no permission to read Secret db\n",
		},
		"one thing that is missing holds as well": {
			[]Workload{outdated("a", func(w *Workload) { w.Hashes, w.Missing = nil, []content.Missing{{Object: secretDB}} })}, Options{},
			"records on a\nConfigMissing: Deployment a is waiting: Secret db not found\n",
		},
		"what is not read yet holds": {
			[]Workload{outdated("a", func(w *Workload) { w.Hashes = nil })}, Options{CoalesceWindow: time.Second},
			"Unread: Deployment a is waiting: its config is read next\n",
		},
		"what could not be read holds": {
			[]Workload{outdated("a", func(w *Workload) { w.Hashes, w.Retry = nil, &Retry{At: now, Reason: "no answer"} })}, Options{CoalesceWindow: time.Second},
			"Unread: Deployment a is waiting: its config could not be read\n",
		},
		"Pods that were suspended are deleted once the workload is released": {
			[]Workload{outdated("a", current, ofKind(statefulSet(3, "v2")), freeing(workload.WaitingPod{Name: "a-0", Held: true}, workload.WaitingPod{Name: "a-1"}))}, Options{},
			"deletes 1 Pods of a\n",
		},
		"but not those that would come back suspended": {
			[]Workload{outdated("a", current, ofKind(statefulSet(3, "v2")), freeing(workload.WaitingPod{Name: "a-0", Held: true}))}, Options{},
			"Releasing: StatefulSet a is waiting: Pod a-0 is not scheduled, because the partition keeps it at the suspended revision; lower the partition\n",
		},
		"a zone gets its hash whatever the budget, and does not use it": {
			[]Workload{
				outdated("a", zone(false)), outdated("b", zone(false)), outdated("c"),
				outdated("d", current, rolledAt(now.Add(-time.Minute), rollout.Progressing), zone(false)),
			}, Options{MaxRolling: 1},
			"rolls c\nrolls a\nrolls b\n",
		},
		"but not while its Pods would be replaced out of turn": {
			[]Workload{outdated("a", zone(true))}, Options{}, "NotHeld: Deployment a is waiting: group ingester does not hold it at its revision\n",
		},
		"a workload that opted out does not stay suspended": {
			[]Workload{outdated("a", func(w *Workload) { w.Suspension.Scheduler, w.Settings.Tracked = true, false })}, Options{}, "rolls a\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := text(test.workloads, test.options)
			if !strings.HasPrefix(got, test.want) || (test.want == "" && got != "") {
				t.Errorf("(-want +got):\n%s", cmp.Diff(test.want, got))
			}
		})
	}
}

// A user sees since when something is to be fixed, also of a manager that has just
// started: the record on the workload says it.
func TestAHoldSaysSinceWhen(t *testing.T) {
	before := now.Add(-time.Hour)
	for name, test := range map[string]struct {
		recorded *workload.Condition
		want     time.Time
	}{
		"it is new":      {nil, now},
		"it is recorded": {&workload.Condition{Reason: ReasonConfigMissing, Since: before}, before},
	} {
		t.Run(name, func(t *testing.T) {
			w := outdated("a", func(w *Workload) {
				w.Hashes, w.Missing, w.Records.Condition = nil, []content.Missing{{Object: secretDB}}, test.recorded
			})
			p := Decide(Observed{Now: now, Workloads: []Workload{w}}, Options{})
			if len(p.Holds) != 1 || !p.Holds[0].Since.Equal(test.want) {
				t.Errorf("got %+v, want one hold since %s", p.Holds, test.want)
			}
		})
	}
}

// Whatever part of the plan a workload belongs to, its path leads to what is said of it:
// that is what explain shows.
func TestThePathOfAWorkloadLeadsToItsAnswer(t *testing.T) {
	o := Observed{Now: now, Workloads: []Workload{
		outdated("alone"), outdated("late", current, lateSince(now.Add(-time.Hour), rollout.Failed)), outdated("zone", zone(true)),
		outdated("late-zone", current, lateSince(now.Add(-time.Hour), rollout.Failed), zone(false)),
	}}
	p := Decide(o, Options{})
	for name, want := range map[int]bool{0: true, 1: true, 2: true, 3: false} {
		w := &o.Workloads[name]
		answer := p.At(w.Path(now)...)
		if got := answer.Step != nil || answer.Hold != nil; got != want {
			t.Errorf("%s: at %v there is an answer: %t, want %t", w.Name.Name, w.Path(now), got, want)
		}
	}
}

// The engine is asked about what is to be done, and not about thousands of workloads at
// rest, which a cluster has at any time.
func TestWhatIsAtRestIsNotAskedAbout(t *testing.T) {
	o := Observed{Now: now, Workloads: []Workload{outdated("a", current), outdated("b", current, zone(false))}}
	for _, part := range tree(o, Options{}).Root.Children {
		if len(part.Children) > 0 {
			t.Errorf("%q has %d namespaces", part.Name, len(part.Children))
		}
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
			if got := test.change.SettlesAt(second); !got.Equal(test.want) {
				t.Errorf("settles at %s, want %s", got, test.want)
			}
		})
	}
}

func TestAConditionKeepsItsTime(t *testing.T) {
	before := now.Add(-time.Hour)
	w := outdated("a", func(w *Workload) {
		w.Missing = []content.Missing{{Object: secretDB}}
		w.Records.Condition = &workload.Condition{Reason: ReasonConfigMissing, Since: before}
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
	if got := (&Change{Keys: many}).Shortened(); len(got) != maxRecorded+1 || got[maxRecorded] != "…" {
		t.Errorf("%d names are recorded", len(got))
	}
}
