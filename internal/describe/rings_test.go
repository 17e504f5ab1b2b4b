package describe

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/record"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/plans"
	"github.com/spillway-dev/spillway/internal/ring"
	zones "github.com/spillway-dev/spillway/internal/zones/decision"
	"github.com/spillway-dev/spillway/rollout"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// outline is a tree, a line a unit: name, phase, reason, counts, what it waits for.
func outline(u *Unit, indent string) string {
	text := indent + u.Name + " " + string(u.Phase)
	if u.Reason != "" {
		text += " " + string(u.Reason)
	}
	if u.WaitsFor != nil {
		text += " for " + u.WaitsFor.String()
	}
	for i := range u.Units {
		text += "\n" + outline(&u.Units[i], indent+"  ")
	}
	return text
}

// lines are facts as they are shown.
func lines(facts []Fact) string {
	var text []string
	for _, f := range facts {
		text = append(text, f.Name+": "+strings.Join(f.Values, " | "))
	}
	return strings.Join(text, "\n")
}

func same(t *testing.T, got string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(strings.Join(want, "\n"), got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestGroup(t *testing.T) {
	e := &zones.Explanation{
		Namespace: "mimir", Name: "ingester", Phase: "Progressing", Updated: "3/6", Deadline: &noon,
		Zones: []v1alpha1.Zone{
			{Name: "a", State: zones.StateComplete, Updated: 2, Ready: 2, Total: 2},
			{Name: "b", State: "Updating", Message: "b-1 is updating", Updated: 1, Ready: 1, Total: 2},
			{Name: "c", State: "Waiting", Message: "c is waiting: b", Ready: 2, Total: 2},
		},
		Rollout: &record.Rollout{
			Phase: "Progressing", Units: record.Counts{Total: 6, Complete: 3, Moving: 1, Waiting: 2},
			Stages: []record.Stage{
				{Name: "a", Phase: "Complete", Total: 2, Complete: 2}, {Name: "b", Phase: "Progressing", Total: 2, Complete: 1, Message: "b-1 is updating"},
				{Name: "c", Phase: "Waiting", Reason: string(rollout.ReasonOrder), Total: 2, WaitsFor: "b"},
			},
			Causes: []record.Cause{
				{State: ring.StateNext, Does: "is updating", Count: 1, Units: []string{"b/b-1"}},
				{State: ring.StateWaiting, Reason: string(rollout.ReasonBudget), Does: "is queued", Position: 1, Count: 1, Units: []string{"b/b-0"}},
				{State: ring.StateWaiting, Reason: string(rollout.ReasonOrder), Does: "is waiting", Count: 1, Units: []string{"c"}, On: &record.Reference{Kind: "Zone", Name: "b"}},
			},
		},
		Lock: &v1alpha1.Lock{Purpose: v1alpha1.PurposeRollout, Zone: "b", Since: metav1.NewMicroTime(noon)}, Pause: &v1alpha1.Pause{Reason: "holidays"},
		History: []v1alpha1.Rollout{{Number: 4, StartedAt: metav1.NewMicroTime(noon), Outcome: "Running"}, {Number: 3, Outcome: "Failed", Message: "b-0 failed"}, {Number: 2}, {Number: 1}},
	}
	u := Group(e)
	same(t, outline(&u, ""), "ingester Progressing", "  a Complete", "  b Progressing", "    b-0 Waiting BudgetExhausted", "    b-1 Progressing", "  c Waiting WaitingForPrevious for zone/b")
	if b := u.Units[1].Units[0]; u.Done != 3 || u.Total != 6 || u.Deadline != &noon || b.Sentence != "b-0 is queued (position 1)" {
		t.Errorf("%d of %d by %v", u.Done, u.Total, u.Deadline)
	}
	same(t, lines(GroupFacts(e, []string{"c follows b"})),
		"phase: Progressing", "updated: 3/6 Pods", "lock: rollout in b, since 2026-05-04 12:00:00 UTC", "paused: by a user: holidays",
		"zone: a | 2/2 updated, 2 ready | Complete", "zone: b | 1/2 updated, 1 ready | Updating: b-1 is updating", "zone: c | 0/2 updated, 2 ready | Waiting: c is waiting: b",
		"replicas: c follows b", "rollout: number 4 | began 2026-05-04 12:00:00 UTC | Running",
		"rollout: number 3 | began 0001-01-01 00:00:00 UTC | Failed: b-0 failed", "rollout: number 2 | began 0001-01-01 00:00:00 UTC | ")
}

func TestWorkload(t *testing.T) {
	for state, want := range map[config.State]rollout.Phase{
		config.StateUpToDate: rollout.PhaseComplete, config.StateNext: rollout.PhaseProgressing, config.StateRolling: rollout.PhaseProgressing,
		config.StateWaiting: rollout.PhasePaused,
	} {
		e := &config.Explanation{Kind: "Deployment", Namespace: "shop", Name: "web", State: state}
		if state == config.StateWaiting {
			e.Reason = rollout.ReasonPaused
		}
		if u := Workload(e); u.Phase != want || u.String() != "deployment/web" {
			t.Errorf("%s: %s is %s", state, u, u.Phase)
		}
	}
	e := &config.Explanation{
		State: config.StateWaiting, Reason: rollout.ReasonBudget, Position: 2, Missing: []string{"Secret db"}, Problems: []string{"annotation x"}, Hash: "abc",
		Uses: []config.UseFact{
			{Object: "Secret db", Keys: []string{"user", "password"}, Required: true}, {Object: "ConfigMap a", Exists: true},
			{Object: "ConfigMap b"}, {Object: "ConfigMap c", Ignored: true},
		},
	}
	same(t, lines(WorkloadFacts(e)),
		"state: Waiting (BudgetExhausted)", "queue: position 2", "missing: Secret db", "problem: annotation x", "uses: Secret db (user, password), not found",
		"uses: ConfigMap a", "uses: ConfigMap b, optional, not found", "uses: ConfigMap c, ignored", "hash: abc")
}

// What is complete and paused says so, in every ring; what is not has a reason that says so.
func TestCompleteAndPaused(t *testing.T) {
	p := &rollout.Pause{By: "ann", Reason: "holidays", Since: noon}
	for want, u := range map[string]Unit{
		"Deployment web is up to date; paused by ann since 4 May 12:00:00 UTC: holidays": Workload(&config.Explanation{
			State: config.StateUpToDate, Sentence: "Deployment web is up to date", Pause: &content.Pause{By: "ann", Reason: "holidays", At: noon},
		}),
		"all of 3 zones are up to date; paused: holidays": Group(&zones.Explanation{
			Phase: "Complete", Sentence: "all of 3 zones are up to date", Pause: &v1alpha1.Pause{Reason: "holidays"},
		}),
		"idle; paused by ann since 4 May 12:00:00 UTC: holidays": Instance(&plans.Explanation{Phase: rollout.PhaseComplete, Sentence: "idle", Pause: p}),
		"done; paused by ann since 4 May 12:00:00 UTC: holidays": Module(&decision.Explanation{Phase: "Complete", Sentence: "done", Pause: p}),
	} {
		if u.Sentence != want || !u.Paused || !u.IsComplete() {
			t.Errorf("%s, %t: %s", u.Phase, u.Paused, u.Sentence)
		}
	}
	e := &config.Explanation{State: config.StateWaiting, Reason: rollout.ReasonPaused, Sentence: "is paused", Pause: &content.Pause{}}
	if u := Workload(e); u.Paused || u.Sentence != "is paused" {
		t.Errorf("%t: %s", u.Paused, u.Sentence)
	}
}

// What a workload waits for stands first, then what it rolls for, then some of the rest.
func TestUsesBeginWithWhatBlocks(t *testing.T) {
	t.Parallel()
	x := content.Object{Kind: content.ConfigMap, Namespace: "shop", Name: "x"}
	e := &config.Explanation{State: config.StateWaiting, Behind: []content.Object{x}}
	for i := range 200 {
		e.Uses = append(e.Uses, config.UseFact{Object: fmt.Sprintf("ConfigMap a%d", i), Exists: true, Required: true})
	}
	e.Uses = append(e.Uses, config.UseFact{Object: "ConfigMap x", Of: x, Exists: true}, config.UseFact{Object: "Secret db", Required: true})
	same(t, lines(WorkloadFacts(e)), "state: Waiting", "uses: Secret db, not found", "uses: ConfigMap x, changed",
		"uses: ConfigMap a0", "uses: ConfigMap a1", "uses: ConfigMap a2", "uses: ConfigMap a3", "uses: ConfigMap a4",
		"uses: ConfigMap a5", "uses: ConfigMap a6", "uses: ConfigMap a7", "uses: and 192 more without a change; -o json names them")
}

// Workloads stand beneath the object that they lack or roll for, which progresses if one
// of them does.
func TestWorkloadsBeneathConfig(t *testing.T) {
	db := &Ref{Kind: "Secret", Namespace: "shop", Name: "db"}
	unit := func(name string, phase rollout.Phase) Unit {
		return Unit{Ref: Ref{Kind: "Deployment", Name: name}, Phase: phase}
	}
	all := tree{causes: map[Ref]int{}}
	all.add(db, unit("waits", rollout.PhaseWaiting))
	all.add(nil, unit("ready", rollout.PhaseComplete))
	all.add(db, unit("rolls", rollout.PhaseProgressing))
	all.add(db, unit("rolled", rollout.PhaseComplete))
	of := []config.UseFact{{Of: db.Content()}}
	units := all.summed(&config.Overview{Workloads: []config.Explanation{
		{Namespace: "shop", Name: "waits", State: config.StateWaiting, Uses: of, Behind: []content.Object{db.Content()}},
		{Namespace: "shop", Name: "rolls", State: config.StateRolling, Uses: of, Behind: []content.Object{db.Content()}},
		{Namespace: "shop", Name: "rolled", State: config.StateUpToDate, Uses: of}, {Namespace: "shop", Name: "another", State: config.StateUpToDate, Uses: of},
		{Namespace: "shop", Name: "new", State: config.StateNotObserved, Uses: of}, {Namespace: "shop", Name: "ready", State: config.StateUpToDate},
	}})
	same(t, outline(&units[0], ""), "db Progressing", "  waits Waiting", "  rolls Progressing", "  rolled Complete")
	if len(units) != 2 || units[0].Done != 2 || units[0].Total != 5 || len(Rolled(units)) != 4 {
		t.Errorf("%+v", units)
	}
	if left := Waiting(units); len(left) != 1 || outline(&left[0], "") != "db Progressing\n  waits Waiting" {
		t.Errorf("%+v", left)
	}
}

func TestInstance(t *testing.T) {
	e := &plans.Explanation{
		Namespace: "shop", Name: "db", Phase: rollout.PhaseProgressing, Plan: "deploy", Status: v1beta1.InProgress, Reason: rollout.ReasonProgressing,
		Phases: []v1beta1.PhaseStatus{{Name: "main", Steps: []v1beta1.StepStatus{
			{Name: "config", Status: v1beta1.Complete, Message: "applied"}, {Name: "nodes", Status: v1beta1.InProgress}, {Name: "check", Status: v1beta1.Error}, {Name: "later"},
		}}},
	}
	u := Instance(e)
	same(t, outline(&u, ""), "db Progressing Progressing", "  deploy Progressing", "    main/config Complete", "    main/nodes Progressing", "    main/check Waiting", "    main/later Waiting")
	if u.Done != 1 || u.Total != 4 || u.Units[0].Units[0].Sentence != "" {
		t.Errorf("%d of %d: %+v", u.Done, u.Total, u.Units[0].Units[0])
	}
	e.Phase, e.Status = rollout.PhasePaused, v1beta1.InProgress
	if u = Instance(e); u.Units[0].Phase != rollout.PhasePaused {
		t.Errorf("a plan that runs in a paused Instance is %s", u.Units[0].Phase)
	}
	e.Phase = rollout.PhaseComplete
	if u = Instance(e); u.Reason != "" || len(u.Units) != 0 {
		t.Errorf("a complete Instance has %s and %d units", u.Reason, len(u.Units))
	}
}

func TestModule(t *testing.T) {
	m := &fleetv1.Module{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "shop", Generation: 2}, Status: fleetv1.ModuleStatus{
		ObservedGeneration: 2, Phase: "Waiting", TargetRevision: "shop-2", Clusters: "1/3", Summary: &fleetv1.Summary{Updating: 1, Failed: 1},
		Stages: []fleetv1.StageStatus{{Name: "canary", State: decision.StateComplete, Updated: 1, Ready: 1, Total: 1}, {Name: "all", State: "Gate", Message: "all is waiting", Total: 2}},
		Rollout: &record.Rollout{
			Phase: "Waiting", Reason: string(rollout.ReasonGate), Units: record.Counts{Total: 3, Complete: 1, Waiting: 2}, WaitingFor: "all is waiting",
			Stages: []record.Stage{{Name: "canary", Phase: "Complete", Total: 1, Complete: 1}, {Name: "all", Phase: "Waiting", Reason: string(rollout.ReasonGate), Total: 2, WaitsFor: "canary"}},
			Causes: []record.Cause{
				{State: ring.StateWaiting, Reason: string(rollout.ReasonGate), Does: "is waiting", Count: 1, Units: []string{"all"}},
				{State: ring.StateWaiting, Reason: string(rollout.ReasonOrder), Does: "is waiting", Count: 1, Units: []string{"all/c2"}, On: &record.Reference{Kind: "Stage", Name: "canary"}},
				{State: ring.StateWaiting, Reason: string(rollout.ReasonPaused), Does: "is paused by ada", Count: 1, Units: []string{"c3"}},
			},
		},
	}}
	e := decision.ExplanationOf(m)
	u := Module(&e)
	same(t, outline(&u, ""), "shop Waiting GatePending", "  canary Complete", "  all Waiting GatePending for stage/canary", "    c2 Waiting WaitingForPrevious for stage/canary", "  c3 Paused Paused")
	same(t, lines(ModuleFacts(&e)),
		"phase: Waiting (GatePending)", "target: shop-2", "clusters: 1/3 up to date, 1 updating, 1 failed", "stage: canary | 1/1 updated, 1 ready, 0 failed | Complete",
		"stage: all | 0/2 updated, 0 ready, 0 failed | Gate: all is waiting", "cluster: c2 | WaitingForPrevious | c2 is waiting", "cluster: c3 | Paused | c3 is paused by ada")
	same(t, lines(ClusterFacts(&decision.ClusterExplanation{Revision: "shop-1", Target: "shop-2", Hold: &fleetv1.Hold{By: "ada"}})), "revision: shop-1", "target: shop-2", "pinned: by ada")
}

// What the manager has not recorded, or of another generation, is never shown as the present state.
func TestARecordOfAnotherGenerationIsUnseen(t *testing.T) {
	complete := &record.Rollout{Phase: "Complete", Units: record.Counts{Total: 3, Complete: 3}}
	for says, status := range map[string]v1alpha1.RolloutGroupStatus{
		"the manager has not observed it yet":                                                                         {},
		"the manager has not observed the current spec; check that the manager is running":                            {ObservedGeneration: 1, Phase: "Complete", Rollout: complete},
		"the manager has not recorded the rollout yet; check that its version is not older than that of this program": {ObservedGeneration: 2, Phase: "Complete"},
	} {
		e := zones.ExplanationOf(&v1alpha1.RolloutGroup{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: status})
		if u := Group(&e); u.Phase != PhaseUnseen || u.Sentence != says || u.Total != 0 || len(u.Units) > 0 {
			t.Errorf("%+v", u)
		}
	}
}

// Of many clusters that wait some are shown, and how to see the others.
func TestModuleShowsSomeClusters(t *testing.T) {
	e := &decision.Explanation{Kind: "Module", Namespace: "clusters", Name: "shop"}
	for range shownClusters + 2 {
		e.Clusters = append(e.Clusters, decision.ClusterExplanation{Reason: rollout.ReasonOrder})
	}
	facts := ModuleFacts(e)
	if last := facts[len(facts)-1]; len(facts) != shownClusters+1 || !strings.HasPrefix(last.Values[0], "2 more are waiting; spillway explain module/shop -n clusters") {
		t.Errorf("%d facts, the last is %q", len(facts), last.Values)
	}
}
