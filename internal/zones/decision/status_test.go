package decision

import (
	"fmt"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// written is the group after the plan's status was written.
func (o *Observed) written(t *testing.T) *Observed {
	t.Helper()
	o = o.copy()
	p := Decide(*o)
	if p.NeedsLive {
		live := o.copy()
		live.Live = true
		p = Decide(*live)
	}
	o.Group.Status = p.Status
	if again := Decide(*o); !again.Permits && !gocmp.Equal(again.Status, p.Status) {
		t.Errorf("one write leads to another:\n%s", gocmp.Diff(p.Status, again.Status))
	}
	return o
}

// then is the same group some time later, with a zone as it is then.
func (o *Observed) then(d time.Duration, sets ...Set) *Observed {
	o = o.copy()
	o.Now = o.Now.Add(d)
	o.Sets = sets
	return o
}

// TestAPodCostsTwoCalls: its delete, and one write of the status, which says what
// is so until it is ready again.
func TestAPodCostsTwoCalls(t *testing.T) {
	b := zoneOf("b", "v1")
	o := group(zoneOf("a", "v1 v1"), b).written(t)
	for what, set := range map[string]Set{
		"it stands":      zoneOf("a", "v1 v1"),
		"it terminates":  zoneOf("a", "v1~ v1"),
		"it is gone":     zoneOf("a", "- v1"),
		"it is new":      zoneOf("a", "v2! v1", renewed, func(s *Set) { s.Pods[0].Reason = "" }),
		"it just starts": zoneOf("a", "v2! v1", renewed, func(s *Set) { s.Pods[0].Reason = "ContainersNotReady" }),
	} {
		p := Decide(*o.then(2*time.Second, set, b))
		if diff := gocmp.Diff(o.Group.Status, p.Status); diff != "" {
			t.Errorf("%s: the status is written again:\n%s", what, diff)
		}
	}
	p := Decide(*o.then(5*time.Second, zoneOf("a", "v2 v1", renewed), b))
	if !p.Permits || p.Status.Updated != "1/3" || len(p.Status.Moves) != 1 || p.Status.Moves[0].Pod != "a-1" {
		t.Errorf("the next one is not permitted by the write that says that this one is done: %+v", p.Status)
	}
}

// renewed has the first Pod of a zone be a new one.
func renewed(s *Set) {
	s.Pods[0].UID, s.Pods[0].Created, s.Pods[0].Since = "new", noon.Add(time.Second), noon.Add(time.Second)
}

// again has it be a newer one still.
func again(s *Set) { s.Pods[0].UID += "er" }

func TestConditions(t *testing.T) {
	for name, test := range map[string]struct {
		observed *Observed
		phase    string
		want     string // Ready, Reconciling, Stalled, and the reason
	}{
		"done":        {group(zoneOf("a", "v2", done)), "Complete", "True False False Complete"},
		"updating":    {group(zoneOf("a", "v1")), "Progressing", "False True False Progressing"},
		"paused":      {group(zoneOf("a", "v1", paused)), "Paused", "False False False Paused"},
		"waiting":     {group(zoneOf("a", "v1", stale)), "Waiting", "False True False StatusNotObserved"},
		"not to read": {group(zoneOf("a", "v1", func(s *Set) { s.Strategy = "Recreate" })), "Stalled", "False False True InvalidInput"},
		"late, while another Pod is not": {
			group(zoneOf("a", "v1 v1 v1")).with(func(g *v1alpha1.RolloutGroupSpec) { g.MaxUnavailable = new(intstr.FromInt32(2)) }).written(t).
				then(11*time.Minute, zoneOf("a", "v2! v2! v1", renewed, func(s *Set) { s.Pods[1].UID, s.Pods[1].Created = "new", noon.Add(5*time.Minute) })),
			"Failed", "False False True Failed",
		},
		"late": {
			group(zoneOf("a", "v1")).written(t).then(11*time.Minute, zoneOf("a", "v2!", renewed)),
			"Failed", "False False True DeadlineExceeded",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := Decide(*test.observed)
			got := ""
			for _, c := range []string{ring.ConditionReady, ring.ConditionReconciling, ring.ConditionStalled} {
				condition := meta.FindStatusCondition(p.Status.Conditions, c)
				if condition.ObservedGeneration != 1 || condition.Message == "" {
					t.Errorf("%+v", condition)
				}
				got += string(condition.Status) + " "
			}
			got += meta.FindStatusCondition(p.Status.Conditions, ring.ConditionReady).Reason
			if got != test.want || p.Status.Phase != test.phase {
				t.Errorf("%s: %s, want %s: %s", p.Status.Phase, got, test.phase, test.want)
			}
		})
	}
}

func TestRows(t *testing.T) {
	o := group(zoneOf("a", "v2 v2", done), zoneOf("b", "v1 v1!"), zoneOf("c", "v1")).written(t)
	var got string
	for _, row := range o.Group.Status.Zones {
		got += fmt.Sprintf("%s %d/%d/%d %q %s %v: %s\n", row.Name, row.Updated, row.Ready, row.Total, row.Revision, row.State, row.StartedAt != nil, row.Message)
	}
	got += o.Group.Status.Zone + " " + o.Group.Status.Updated + " " + o.Group.Status.WaitingFor
	want := `a 2/2/2 "v2" Complete false: 
b 0/1/2 "" Progressing true: b-1 is updating: being replaced since 4 May 12:00:00 UTC (CrashLoopBackOff)
c 0/1/1 "" WaitingForTurn false: c is waiting: b has 1 of 2 ready, b-1 is being replaced since 4 May 12:00:00 UTC (CrashLoopBackOff)
2/3 2/5 b-1 is updating: being replaced since 4 May 12:00:00 UTC (CrashLoopBackOff)`
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// TestHistory tells of two rollouts: one that a newer template supersedes, and that.
func TestHistory(t *testing.T) {
	v3 := func(s *Set) { s.UpdateRevision, s.Writer = "v3", "kubectl-edit" }
	o := group(zoneOf("a", "v1"), zoneOf("b", "v1")).written(t)
	o = o.then(time.Minute, zoneOf("a", "v2!", v3, renewed), zoneOf("b", "v1", v3)).written(t)
	o = o.then(time.Minute, zoneOf("a", "v3", v3, renewed, again), zoneOf("b", "v1", v3)).written(t)
	o = o.then(time.Minute, zoneOf("a", "v3", v3, renewed, again), zoneOf("b", "v3", v3, renewed)).written(t)
	var got string
	for _, r := range o.Group.Status.History {
		got += fmt.Sprintf("%d %s %s by %q, undone by %q", r.Number, r.Outcome, r.Duration, r.ChangedBy, r.UndoneBy)
		for _, z := range r.Zones {
			got += fmt.Sprintf(", %s to %s from %s", z.Name, z.Revision, z.StartedAt.Format(time.TimeOnly))
			if z.FinishedAt != nil {
				got += " until " + z.FinishedAt.Format(time.TimeOnly)
			}
		}
		got += "\n"
	}
	want := `2 Complete 2m0s by "kubectl-edit", undone by "", a to v3 from 12:01:00 until 12:02:00, b to v3 from 12:02:00 until 12:03:00
1 Superseded 1m0s by "", undone by "kubectl-edit", a to v2 from 12:00:00
`
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

// TestUndone: who gives a failed rollout another target has undone it, once and for all; whether Pods have to move for
// that, or a user has deleted them.
func TestUndone(t *testing.T) {
	edited := func(revision string, by ...string) func(int, *Set) {
		return func(i int, s *Set) { s.UpdateRevision, s.Writer = revision, by[i%len(by)] }
	}
	zones := func(a, b string, edit func(int, *Set)) []Set {
		sets := []Set{zoneOf("a", a), zoneOf("b", b)}
		sets[0].Pods[0].UID = types.UID(a) // each is another Pod
		for i := range sets {
			edit(i, &sets[i])
		}
		return sets
	}
	failed := group(zones("v1", "v1", edited("v2", "helm"))...).written(t)
	failed = failed.then(time.Hour, zones("v2!", "v1", edited("v2", "helm"))...).written(t)
	for name, test := range map[string]struct {
		next []Set
		want string
	}{
		"by one":             {zones("v2!", "v1", edited("v3", "anna")), "anna"},
		"by several":         {zones("v2!", "v1", edited("v3", "anna", "bert")), "anna"}, // only zone a had got the other
		"by an unknown user": {zones("v2!", "v1", edited("v3", "")), ""},
		"while its Pod is deleted": {zones("v1", "v1", func(i int, s *Set) {
			edited("v1", "anna")(i, s)
			s.Pods[0].UID += "again"
		}), "anna"},
	} {
		o := failed.then(time.Minute, test.next...).written(t)
		history := o.Group.Status.History
		last := history[len(history)-1]
		if last.Outcome != "Failed" || last.UndoneBy != test.want {
			t.Errorf("%s: %+v", name, last)
		}
		if p := Decide(*o); p.NeedsLive {
			t.Errorf("%s: the API server is asked again", name)
		}
		o = o.then(time.Minute, zones("v1", "v1", edited("v4", "carl"))...).written(t)
		history = o.Group.Status.History
		if last = history[len(history)-1]; last.UndoneBy != test.want {
			t.Errorf("%s, and later another rollout: %+v", name, last)
		}
	}
}

// TestWhoWroteATemplate: Spillway's own entry tells nothing, because it is also that of what it writes beside the template.
func TestWhoWroteATemplate(t *testing.T) {
	const template, partition = `{"f:spec":{"f:template":{"f:spec":{}}}}`, `{"f:spec":{"f:updateStrategy":{}}}`
	entry := func(by string, minute int, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: by, Time: new(metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute))), FieldsV1: metav1.NewFieldsV1(fields)}
	}
	rolled := func(minute int) map[string]string {
		return map[string]string{"spillway.dev/config-change": noon.Add(time.Duration(minute) * time.Minute).Format(`{"at":"2006-01-02T15:04:05.3Z"}`)}
	}
	for name, test := range map[string]struct {
		annotations map[string]string
		fields      []metav1.ManagedFieldsEntry
		want        string
	}{
		"a user":                                 {nil, []metav1.ManagedFieldsEntry{entry("helm", 1, template), entry("anna", 2, template)}, "anna"},
		"a user, and then a partition by us":     {nil, []metav1.ManagedFieldsEntry{entry("anna", 2, template), entry("spillway", 3, partition)}, "anna"},
		"a change of config":                     {rolled(3), []metav1.ManagedFieldsEntry{entry("anna", 2, template), entry("spillway", 4, template)}, "spillway"},
		"a user after a change of config":        {rolled(1), []metav1.ManagedFieldsEntry{entry("anna", 2, template), entry("spillway", 4, template)}, "anna"},
		"both in one second":                     {rolled(2), []metav1.ManagedFieldsEntry{entry("anna", 2, template), entry("spillway", 4, template)}, ""},
		"a change of which the record was taken": {nil, []metav1.ManagedFieldsEntry{entry("anna", 2, template), entry("spillway", 4, template)}, ""},
		"nothing is known":                       {nil, nil, ""},
	} {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon), Annotations: test.annotations, ManagedFields: test.fields}}
		if got := SetOf(set, nil).Writer; got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestHistoryIsBounded(t *testing.T) {
	for limit, want := range map[int32]int{0: 0, 1: 1, 3: 3} {
		o := group(zoneOf("a", "v1")).with(func(g *v1alpha1.RolloutGroupSpec) { g.HistoryLimit = &limit })
		for i := range 5 {
			set := zoneOf("a", fmt.Sprintf("r%d", i), func(s *Set) {
				s.UpdateRevision, s.Pods[0].UID = fmt.Sprintf("r%d", i+1), types.UID(fmt.Sprint(i))
			})
			o = o.then(time.Minute, set).written(t)
		}
		if got := len(o.Group.Status.History); got != want {
			t.Errorf("limit %d: %d are kept", limit, got)
		}
	}
}

// TestWake: a plan that waits for time alone says until when.
func TestWake(t *testing.T) {
	for name, test := range map[string]struct {
		observed *Observed
		want     time.Time
	}{
		"converged": {group(zoneOf("a", "v2", done)), time.Time{}},
		"minReadySeconds": {
			group(zoneOf("a", "v1 v1", readyFor(5*time.Second))).with(func(g *v1alpha1.RolloutGroupSpec) { g.MinReadySeconds = 30 }),
			noon.Add(25 * time.Second),
		},
		"a move that was not acted upon": {group(zoneOf("a", "v1")).locked("a").moving("a-0"), noon.Add(ring.ActWithin)},
		"a refusal":                      {group(zoneOf("a", "v1")).locked("a").moving("a-0").refused("a-0"), noon.Add(10 * time.Second)},
		"a window that opens":            {group(zoneOf("a", "v1")).with(windows("30 12 * * *")), noon.Add(30 * time.Minute)},
		"a window that closes":           {group(zoneOf("a", "v1!")).with(windows("0 12 * * *")), noon.Add(time.Hour)},
		"a lock that expires":            {group(zoneOf("a", "v1")).lockedBy("eviction", noon.Add(time.Second)), noon.Add(time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Decide(*test.observed).Wake; !got.Equal(test.want) {
				t.Errorf("%s, want %s", rollout.Clock(got), rollout.Clock(test.want))
			}
		})
	}
}
