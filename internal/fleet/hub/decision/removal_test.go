package decision_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/rollout"
)

// A mistake in the selector matches no cluster: nothing is removed before a user approves,
// and then no more at a time than the budget allows; and without a cluster the module is not ready.
func TestAMistakeInTheSelectorRemovesNothingUntilItIsApproved(t *testing.T) {
	o := planned(t, `strategy: Incremental, rollout: {maxUnreadyClusters: 2}`, "a v1 up\nb v1 up\nc v1 up\nd v1 up\ne v1 up")
	o.Module.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "porduction"}}
	p := decision.Decide(o)
	if p.Permits || len(p.Steps) > 0 || p.Status.Removal == nil || p.Status.Removal.Clusters != 5 {
		t.Fatalf("%d steps, removal %+v", len(p.Steps), p.Status.Removal)
	}
	if !strings.Contains(p.Status.WaitingFor, "5 of 5 are to be removed, more than 1 (maxRemoved)") {
		t.Error(p.Status.WaitingFor)
	}
	o.Module.Status, o.Module.RemovalApproval = p.Status, p.Status.Removal.Approval
	for left := 5; left > 0; {
		o.Module.Status.Moves = nil
		p = decision.Decide(o)
		if n := len(p.Status.Moves); !p.Permits || n != min(2, left) {
			t.Fatalf("%d of %d lose the module at a time: %s", n, left, said(&p))
		}
		for _, m := range p.Status.Moves { // they lose it, and their reports go with it
			for i := range o.Records {
				if o.Records[i].Cluster == m.Cluster {
					o.Records[i].Assigned, o.Records[i].Reported = false, false
					left--
				}
			}
		}
		o.Module.Status = p.Status
	}
	o.Module.Status.Moves = nil
	p = decision.Decide(o)
	ready := p.Status.Conditions[0]
	if p.Status.Phase != string(rollout.PhaseWaiting) || ready.Type != "Ready" || ready.Status != metav1.ConditionFalse || ready.Reason != string(decision.ReasonNoClusters) {
		t.Errorf("%s %+v", p.Status.Phase, ready)
	}
	o.Module.Spec.AllowEmpty = true
	if p = decision.Decide(o); p.Status.Phase != string(rollout.PhaseComplete) {
		t.Errorf("it may be for none, and is %s", p.Status.Phase)
	}
}

// What is left of an approval is counted down, also where an old view shows the very clusters
// that it was given for: the place of one of them went to another cluster meanwhile. The next
// approval is another one, though it is for the same clusters.
func TestAnApprovalIsNotGoodForMore(t *testing.T) {
	o := planned(t, `strategy: Incremental, rollout: {maxUnreadyClusters: 2, maxRemoved: 0}`, "a v1 up env=dev\nb v1 up env=dev\nc v2 up")
	o.Module.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	p := decision.Decide(o)
	given := p.Status.Removal.Approval
	o.Module.Status, o.Module.RemovalApproval = p.Status, given
	o.Module.Status.Removal = &v1alpha1.RemovalStatus{Clusters: 2, Approved: given, Left: 1}
	if p = decision.Decide(o); p.Permits || p.Status.Removal.Left != 1 || p.Status.Removal.Approval == given || p.Status.Removal.Approval == "" {
		t.Fatalf("permits %t: %+v", p.Permits, p.Status.Removal)
	}
	o.Module.Status, o.Module.RemovalApproval = p.Status, p.Status.Removal.Approval
	if p = decision.Decide(o); len(p.Status.Moves) != 2 || p.Status.Removal.Approved != o.Module.RemovalApproval || p.Status.Removal.Left != 0 {
		t.Errorf("%+v: %+v", p.Status.Moves, p.Status.Removal)
	}
}

// A cluster that is unready anyway loses the module though one of a later stage is to lose it
// first: it has the place in the budget of its stage for which that stage waits, and what
// is down in the later stage waits for this one.
func TestWhatIsUnreadyLosesTheModuleWithoutWaitingForAnotherStage(t *testing.T) {
	const stages = `strategy: Incremental, rollout: {maxUnreadyClusters: 1, maxRemoved: 100%, onFailure: Continue,
		stages: [{name: first, selector: {matchLabels: {stage: first}}}, {name: then}]}`
	o := planned(t, stages, "a v1 failed stage=first env=dev\nb v1 up stage=first\nc v1 up env=dev\nd v1 updating @1m")
	o.Module.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	p := decision.Decide(o)
	if len(p.Status.Moves) != 1 || p.Status.Moves[0].Cluster != "a" || !p.Status.Moves[0].Remove || !p.Status.Moves[0].Repair {
		t.Fatalf("%+v: %s", p.Status.Moves, said(&p))
	}
	for cluster, want := range map[string]string{
		"b": "b is queued (position 1): 1 of 1 allowed unavailable in first",
		"c": "c is queued (position 1): 1 of 1 allowed unavailable in then",
	} {
		if !strings.Contains(said(&p), want) {
			t.Errorf("%s: %s", cluster, said(&p))
		}
	}
	o.Records[0].State, o.Records[0].Succeeded = v1alpha1.StateSucceeded, o.Records[0].Revision // what is up waits for the later stage
	if p = decision.Decide(o); len(p.Status.Moves) != 1 || p.Status.Moves[0].Cluster != "b" {
		t.Errorf("%+v: %s", p.Status.Moves, said(&p))
	}
}

// A revision that nothing needs is deleted once nothing may be assigned that the view does not
// show.
func TestNoRevisionIsDeletedWhileAMoveIsPermitted(t *testing.T) {
	o := planned(t, `strategy: Incremental, revisionHistoryLimit: 0`, "a v2 up")
	o.Module.Status.CurrentRevision = revisionOf("v2")
	deletes := func() (names []string) {
		p := decision.Decide(o)
		for _, w := range p.Writes {
			if w.Act == decision.DeleteRevision {
				names = append(names, w.Revision)
			}
		}
		return names
	}
	if got := deletes(); len(got) != 1 || got[0] != revisionOf("v1") {
		t.Errorf("deleted: %v", got)
	}
	move := permitted(&o)
	move.Revision = revisionOf("v2")
	move.At = metav1.NewMicroTime(noon.Add(-time.Second))
	o.Module.Status.Moves = []v1alpha1.Move{move}
	if got := deletes(); len(got) > 0 {
		t.Errorf("deleted while a move is permitted: %v", got)
	}
}

// A cluster that failed at the target and is unknown since stops the rollout as before, in the
// stage that was open when it was assigned: that a later stage had begun before, and was
// finished, does not matter.
func TestAFailedClusterThatIsUnknownStopsTheRollout(t *testing.T) {
	o := planned(t, `strategy: Incremental, rollout: {maxUnreadyClusters: 3, stages: [{name: first, selector: {matchLabels: {stage: first}}}, {name: then}]}`,
		"a v2 failed unknown @1m\nb v1 up stage=first\nc v1 up")
	ago := func(d time.Duration) *metav1.MicroTime { return new(metav1.NewMicroTime(noon.Add(-d))) }
	o.Module.Status.TargetRevision = revisionOf("v2")
	o.Module.Status.Stages = []v1alpha1.StageStatus{{Name: "first", StartedAt: ago(time.Minute)}, {Name: "then", StartedAt: ago(time.Hour), FinishedAt: ago(time.Minute)}}
	p := decision.Decide(o)
	if want := "first failed: 1 of 2 units failed, 0 allowed; a failed: not healthy; and it is unknown since"; len(p.Steps) > 0 || len(p.Holds) != 3 || !strings.Contains(said(&p), want) {
		t.Errorf("%q is not in:\n%s", want, said(&p))
	}
	o.Records[0].State = v1alpha1.StateUpdating // of one that has not failed that is not said
	if p = decision.Decide(o); len(p.Steps) != 1 || p.Steps[0].Path[len(p.Steps[0].Path)-1] != "b" {
		t.Errorf("it has not failed, and:\n%s", said(&p))
	}
}

// A stage into which another cluster is moved is not finished any more.
func TestAStageIsNotFinishedWhileAClusterIsMovedIntoIt(t *testing.T) {
	o := planned(t, `strategy: Incremental`, "a v2 up\nb v1 up")
	at := metav1.NewMicroTime(noon.Add(-time.Minute))
	o.Module.Status.TargetRevision = revisionOf("v2")
	o.Module.Status.Stages = []v1alpha1.StageStatus{{Name: "all", StartedAt: &at, FinishedAt: &at}}
	if p := decision.Decide(o); !p.Permits || p.Status.Stages[0].FinishedAt != nil || !p.Status.Stages[0].StartedAt.Equal(&at) {
		t.Errorf("%+v", p.Status.Stages)
	}
}

// While a cluster may be losing the module at any moment, and is selected again, no other loses
// it: the user may deselect it once more, and one that is pinned has no place in a budget.
func TestAClusterThatIsSelectedAgainKeepsOthersFromLosingTheModule(t *testing.T) {
	o := planned(t, `strategy: Incremental, rollout: {maxRemoved: 100%}`, "a v2 up held\nb v2 up env=dev\nc v2 up")
	o.Module.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	if p := decision.Decide(o); len(p.Steps) != 1 {
		t.Fatalf("b does not lose the module: %s", said(&p))
	}
	move := permitted(&o)
	move.Revision = revisionOf("v2")
	move.Remove, move.AssignedAt = true, new(metav1.NewMicroTime(o.Records[0].AssignedAt))
	o.Module.Status.Moves = []v1alpha1.Move{move}
	if p := decision.Decide(o); len(p.Steps) > 0 || !strings.Contains(said(&p), "removals is waiting: a is losing the module, and is selected again") {
		t.Errorf("%d steps: %s", len(p.Steps), said(&p))
	}
}

// A removal that was permitted and comes to nothing, as the assemblage has changed since, is not counted as one that
// was made: neither the cluster that keeps the module counts twice, nor what an approval has permitted in place of
// what needed none.
func TestARemovalThatComesToNothingDoesNotCountInMaxRemoved(t *testing.T) {
	for _, approved := range []bool{false, true} {
		o := planned(t, `strategy: Incremental, rollout: {maxUnreadyClusters: 2, maxRemoved: 2}`, "a v1 up env=dev\nb v1 up env=dev\nc v2 up")
		o.Live = true
		o.Module.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: metav1.LabelSelectorOpDoesNotExist}}}
		p := decision.Decide(o)
		if len(p.Status.Moves) != 2 || p.Status.RecentRemovals == nil || p.Status.RecentRemovals.Clusters != 2 {
			t.Fatalf("%+v: %+v", p.Status.Moves, p.Status.RecentRemovals)
		}
		o.Module.Status = p.Status
		o.Module.Status.Moves[0].Approved = approved
		for i := range o.Clusters {
			if o.Clusters[i].Name == "a" {
				delete(o.Clusters[i].Labels, "env")
			}
		}
		for i := range o.Records {
			if o.Records[i].Cluster == "a" {
				o.Records[i].Fence = "withdrawn"
			}
		}
		want := int32(1)
		if approved {
			want = 2
		}
		p = decision.Decide(o)
		if got := p.Status.RecentRemovals; got == nil || got.Clusters != want || !got.At.Equal(&o.Module.Status.RecentRemovals.At) {
			t.Errorf("approved %t: %+v for %+v count", approved, got, p.Status.Moves)
		}
	}
}
