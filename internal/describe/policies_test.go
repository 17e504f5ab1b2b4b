package describe

import (
	"fmt"
	"testing"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/rollout"
)

// releaseOf is a release of a Secret in a namespace that has come to the first of two stages.
func releaseOf(namespace, name string, phase rollout.Phase, waits string) policy.Release {
	return policy.Release{
		Release: content.Release{Object: content.Object{Kind: content.Secret, Namespace: namespace, Name: name}}, Namespace: namespace,
		Progress: policy.Progress{Phase: phase, Updated: 1, Of: 5}, Waits: waits, Since: noon,
		Stages: []policy.StageProgress{{Name: "first", Progress: policy.Progress{Phase: phase, Of: 1}}, {Name: "others", Progress: policy.Progress{Phase: rollout.PhaseWaiting, Of: 4}}},
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	e := &policy.Explanation{
		Kind: "ConfigPolicy", Namespace: "shop", Name: "careful",
		Releases: []policy.Release{releaseOf("shop", "db", rollout.PhaseProgressing, "deployment/app1 is updating: not ready")},
	}
	u := Policy(e, "shop")
	same(t, outline(&u, ""), "careful Progressing", "  Secret db@ Progressing", "    first Progressing", "    others Waiting")
	same(t, u.Sentence, "stage 1 of 2 (first): deployment/app1 is updating: not ready")
	if r := &u.Units[0]; r.Namespace != "shop" || r.Sentence != u.Sentence || r.Done != 1 || r.Total != 5 || r.Since == nil || !u.Since.Equal(*r.Since) {
		t.Errorf("%+v of %+v", r, u)
	}
	e.Releases = append(e.Releases, releaseOf("shop", "ca", rollout.PhaseFailed, "deployment/app2 failed"))
	u = Policy(e, "shop")
	same(t, string(u.Phase)+": "+u.Sentence, "Failed: 2 releases are under way: Secret ca@: stage 1 of 2 (first): deployment/app2 failed")
	e.Releases = []policy.Release{releaseOf("shop", "db", rollout.PhaseWaiting, "stage first is ready; soaking until noon")}
	e.Releases[0].Cause = rollout.Cause{Subject: "stage first", Does: "is ready; soaking until noon"}
	u = Policy(e, "shop")
	same(t, u.Sentence, "stage 1 of 2 (first) is ready; soaking until noon")
	e.Problem = "its spec is not valid: selector"
	u = Policy(e, "shop")
	same(t, string(u.Phase)+": "+u.Sentence, "Stalled: ConfigPolicy careful holds all releases that it is for: its spec is not valid: selector")
	e.Problem, e.Unobserved = "", true
	u = Policy(e, "shop")
	same(t, string(u.Phase)+": "+u.Sentence, "Unseen: ConfigPolicy careful is not observed yet: the manager of the config ring writes its status")
	e.Unobserved, e.Releases, e.Pause = false, nil, &rollout.Pause{By: "ann", Reason: "lunch"}
	u = Policy(e, "shop")
	same(t, string(u.Phase)+": "+u.Sentence, "Complete: no release is under way; paused by ann: lunch")
}

// In a namespace there are its own policies, and those of all namespaces that do something
// there; of these only what they do there.
func TestPoliciesOfANamespace(t *testing.T) {
	t.Parallel()
	all := []policy.Explanation{
		{Kind: "ConfigPolicy", Namespace: "shop", Name: "careful"}, {Kind: "ConfigPolicy", Namespace: "bank", Name: "other"},
		{Kind: "ClusterConfigPolicy", Name: "default", Releases: []policy.Release{
			releaseOf("bank", "db", rollout.PhaseFailed, "failed"), releaseOf("shop", "db", rollout.PhaseWaiting, "waits"),
		}},
		{Kind: "ClusterConfigPolicy", Name: "idle"},
	}
	outlines := func(namespace string) string {
		text := ""
		for _, u := range policies(all, &Options{Namespace: namespace}) {
			text += outline(&u, "") + "\n"
		}
		return text
	}
	same(t, outlines("shop"), "careful Complete", "default Waiting", "  Secret db@ Waiting", "    first Waiting", "    others Waiting", "")
	same(t, outlines(""), "careful Complete", "other Complete", "default Failed", "  Secret db@ Failed", "    first Failed", "    others Waiting",
		"  Secret db@ Waiting", "    first Waiting", "    others Waiting", "idle Complete", "")
	if u := policies(all, &Options{Namespace: ""})[2]; u.Units[0].Namespace != "bank" || u.Units[0].Since == nil || !u.Units[0].Since.Equal(noon) || u.Units[0].Until != nil {
		t.Errorf("%+v", u.Units[0])
	}
	if counts := Counts(policies(all, &Options{Namespace: ""})); counts != "4 policies" {
		t.Error(counts)
	}
	if counts := Counts(append(policies(all[:1], &Options{Namespace: ""}), Unit{Phase: rollout.PhaseWaiting})); counts != "1 Waiting, 1 policy" {
		t.Error(counts)
	}
}

// An object that is paused is shown also while all workloads have its content. Where one waits for
// it, that is said beneath it.
func TestPausedObjects(t *testing.T) {
	t.Parallel()
	db := content.Object{Kind: content.Secret, Namespace: "shop", Name: "db"}
	uses := []config.UseFact{{Object: "Secret db", Of: db, Paused: &content.Pause{By: "ann", Reason: "incident 42"}}}
	done := config.Explanation{Kind: "Deployment", Namespace: "shop", Name: "app1", State: config.StateUpToDate, Uses: uses}
	waits := config.Explanation{
		Kind: "Deployment", Namespace: "shop", Name: "app2", State: config.StateWaiting, Reason: rollout.ReasonPaused, Behind: []content.Object{db}, Uses: uses,
	}
	const says = "secret/db paused by ann: incident 42; to resume: spillway resume secret/db -n shop"
	for name, test := range map[string]struct {
		workloads []config.Explanation
		want      string
	}{
		"all have its content": {[]config.Explanation{done, done}, says + " 2/2"},
		"one waits for it":     {[]config.Explanation{done, waits}, ""},
	} {
		units, got := tree{causes: map[Ref]int{}, paused: map[Ref]bool{}}, ""
		for i := range test.workloads {
			e := &test.workloads[i]
			units.add(causeOf(e), Workload(e))
			units.addPaused(e)
		}
		for _, u := range units.idle(&config.Overview{Workloads: test.workloads}) {
			got += fmt.Sprintf("%s %s %d/%d", u.Ref, u.Sentence, u.Done, u.Total)
			if !u.IsComplete() || !u.Paused {
				t.Errorf("%s: it is %v", name, u)
			}
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// What is asked about a Secret is answered by all workloads that are rolled for it, and by the
// release of a policy.
func TestConfigObject(t *testing.T) {
	t.Parallel()
	db := content.Object{Kind: content.Secret, Namespace: "shop", Name: "db"}
	workload := func(name string, state config.State, reason rollout.Reason) config.Explanation {
		return config.Explanation{
			Kind: "Deployment", Namespace: "shop", Name: name, State: state, Reason: reason, Sentence: name + " says so",
			Uses: []config.UseFact{{Of: db}}, Behind: map[bool][]content.Object{true: {db}}[state != config.StateUpToDate],
		}
	}
	release := releaseOf("shop", "db", rollout.PhaseProgressing, "app1 is updating")
	for name, test := range map[string]struct {
		workloads []config.Explanation
		releases  []policy.Release
		want      string
	}{
		"nothing is rolled for it": {[]config.Explanation{workload("app1", config.StateNotTracked, "")}, nil, ""},
		"complete":                 {[]config.Explanation{workload("app1", config.StateUpToDate, "")}, nil, "Complete 1/1: "},
		"without a policy": {[]config.Explanation{
			workload("app1", config.StateUpToDate, ""), workload("app2", config.StateWaiting, rollout.ReasonBudget), workload("app3", config.StateRolling, rollout.ReasonProgressing),
		}, nil, "Progressing 1/3: app3 says so"},
		"a stage": {[]config.Explanation{
			workload("app1", config.StateRolling, rollout.ReasonProgressing), workload("app2", config.StateWaiting, rollout.ReasonOrder),
		}, []policy.Release{releaseOf("shop", "ca", rollout.PhaseFailed, "another"), release}, "Progressing 0/2: ClusterConfigPolicy default: stage 1 of 2 (first): app1 is updating"},
		"failed": {[]config.Explanation{
			workload("app1", config.StateUpToDate, ""), workload("app2", config.StateWaiting, decision.ReasonConfigFailed), workload("app3", config.StateFailed, rollout.ReasonFailed),
		}, nil, "Failed 1/3: app2 says so"},
		"given up": {[]config.Explanation{workload("app1", config.StateWaiting, decision.ReasonConfigRolledBack)}, nil, "Failed 0/1: app1 says so"},
		"another one still progresses": {[]config.Explanation{
			workload("app1", config.StateFailed, rollout.ReasonFailed), workload("app2", config.StateRolling, rollout.ReasonProgressing),
		}, nil, "Progressing 0/2: app2 says so"},
	} {
		all := &config.Overview{Workloads: test.workloads, Policies: []policy.Explanation{{Kind: "ClusterConfigPolicy", Name: "default", Releases: test.releases}}}
		got := ""
		for _, u := range configObject(all, &Ref{Kind: KindSecret, Namespace: "shop", Name: "db"}) {
			got += fmt.Sprintf("%s %d/%d: %s", u.Phase, u.Done, u.Total, u.Sentence)
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
