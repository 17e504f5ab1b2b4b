package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/rollout"
)

var now = time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)

// named reads a policy: "shop/a" is a ConfigPolicy, "a" a ClusterConfigPolicy.
func named(t interface{ Fatal(args ...any) }, name, spec string) *policy.Policy {
	namespace, rest, isNamespaced := strings.Cut(name, "/")
	if !isNamespaced {
		obj := &v1alpha1.ClusterConfigPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 3}}
		if err := yaml.UnmarshalStrict([]byte(spec), &obj.Spec); err != nil {
			t.Fatal(spec, err)
		}
		return policy.Read(obj)
	}
	obj := &v1alpha1.ConfigPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: rest, Generation: 3}}
	if err := yaml.UnmarshalStrict([]byte(spec), &obj.Spec); err != nil {
		t.Fatal(spec, err)
	}
	return policy.Read(obj)
}

func TestOnePolicyCounts(t *testing.T) {
	db := content.Object{Kind: content.Secret, Namespace: "shop", Name: "db"}
	for name, test := range map[string]struct {
		policies [][2]string
		want     string
	}{
		"none":                           {nil, "none"},
		"the namespace before a cluster": {[][2]string{{"a", "{priority: 9}"}, {"shop/z", "{priority: -9}"}}, "ConfigPolicy shop/z"},
		"the higher priority":            {[][2]string{{"shop/a", "{}"}, {"shop/b", "{priority: 1}"}}, "ConfigPolicy shop/b"},
		"the first name":                 {[][2]string{{"b", "{}"}, {"a", "{}"}}, "ClusterConfigPolicy a"},
		"another namespace":              {[][2]string{{"bank/a", "{}"}}, "none"},
		"another namespace of a cluster": {[][2]string{{"a", "{namespaces: [bank]}"}}, "none"},
		"its namespace of a cluster":     {[][2]string{{"a", "{namespaces: [bank, shop]}"}}, "ClusterConfigPolicy a"},
		"another kind":                   {[][2]string{{"a", "{objects: [{kind: ConfigMap}]}"}}, "none"},
		"another name":                   {[][2]string{{"a", "{objects: [{name: ca}]}"}}, "none"},
		"its name and kind":              {[][2]string{{"a", "{objects: [{name: ca}, {kind: Secret, name: db}]}"}}, "ClusterConfigPolicy a"},
		"its labels":                     {[][2]string{{"a", "{selector: {matchLabels: {app: web}}}"}}, "ClusterConfigPolicy a"},
		"other labels":                   {[][2]string{{"a", "{selector: {matchLabels: {app: api}}}"}}, "none"},
		"a selector that is not valid":   {[][2]string{{"a", "{selector: {matchExpressions: [{key: x, operator: Is}]}}"}}, "ClusterConfigPolicy a"},
	} {
		t.Run(name, func(t *testing.T) {
			var set policy.Set
			for _, p := range test.policies {
				set = append(set, named(t, p[0], p[1]))
			}
			slices.SortFunc(set, policy.Compare)
			got := "none"
			if p := set.For("shop", labels.Set{"app": "web"}, db); p != nil {
				got = p.String()
			}
			if got != test.want {
				t.Errorf("%s counts, want %s", got, test.want)
			}
		})
	}
}

// The policy that counts for an object decides whether the workloads that use it have pins;
// one object of which the policy says so is enough.
func TestPinning(t *testing.T) {
	uses := func(names ...string) (refs []content.Reference) {
		for _, name := range names {
			refs = append(refs, content.Reference{Object: content.Object{Kind: content.Secret, Namespace: "shop", Name: name}})
		}
		return refs
	}
	const cluster, dbOnly = "{pinConfig: true}", "{pinConfig: true, objects: [{name: db}]}"
	extra := uses("db")
	extra[0].Extra = true
	for name, test := range map[string]struct {
		policies [][2]string
		uses     []content.Reference
		want     string
	}{
		"none":                         {nil, uses("db"), "none"},
		"one that does not":            {[][2]string{{"a", "{}"}}, uses("db"), "none"},
		"one that does":                {[][2]string{{"a", cluster}}, uses("db"), "ClusterConfigPolicy a"},
		"the first one does not":       {[][2]string{{"a", cluster}, {"shop/a", "{}"}}, uses("db"), "none"},
		"for another object":           {[][2]string{{"a", dbOnly}}, uses("ca"), "none"},
		"for one of the objects":       {[][2]string{{"a", dbOnly}}, uses("ca", "db"), "ClusterConfigPolicy a"},
		"the first is for another one": {[][2]string{{"a", cluster}, {"shop/a", "{objects: [{name: ca}]}"}}, uses("ca", "db"), "ClusterConfigPolicy a"},
		"what Pods do not refer to":    {[][2]string{{"a", cluster}}, extra, "none"},
		"a workload without config":    {[][2]string{{"a", cluster}}, nil, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			var set policy.Set
			for _, p := range test.policies {
				set = append(set, named(t, p[0], p[1]))
			}
			slices.SortFunc(set, policy.Compare)
			got := "none"
			if p := set.Pinning("shop", nil, test.uses); p != nil {
				got = p.String()
			}
			if got != test.want {
				t.Errorf("%s pins, want %s", got, test.want)
			}
		})
	}
}

// TestStagesHaveOneOrder: of two members that are rolled next, the same one is in the earlier
// stage or in the same, whatever the other members are.
func TestStagesHaveOneOrder(t *testing.T) {
	const spec = "{stages: [{name: one, workloads: 1}, {name: half, workloads: 50%}, {name: a, selector: {matchLabels: {x: a}}}, {name: b, selector: {matchLabels: {x: b}}}]}"
	rapid.Check(t, func(t *rapid.T) {
		p := named(t, "shop/p", spec)
		var all []policy.Member
		for i := range 8 {
			all = append(all, policy.Member{
				Labels: labels.Set{"x": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "x")}, Claim: rapid.SampledFrom([]policy.Claim{policy.ClaimHas, policy.ClaimNext, policy.ClaimNone}).Draw(t, "claim"),
				Last: rapid.Bool().Draw(t, "last"), Disrupted: rapid.Bool().Draw(t, "disrupted"), Mute: rapid.Bool().Draw(t, "mute"), Priority: rapid.IntRange(0, 1).Draw(t, "priority"), Name: fmt.Sprint(i),
			})
		}
		first, second := stagesOf(p, all, drawSome(t, all)), stagesOf(p, all, drawSome(t, all))
		for a := range all {
			for b := range all {
				if all[a].Mute || all[b].Mute || all[a].Claim != policy.ClaimNext || all[b].Claim != policy.ClaimNext || first[a] < 0 || first[b] < 0 || second[a] < 0 || second[b] < 0 {
					continue
				}
				if first[a] < first[b] && second[a] > second[b] {
					t.Fatalf("%d and %d are in the stages %v, and in %v", a, b, first, second)
				}
			}
		}
	})
}

// TestStagesShowSomething: no stage but the last has a mute member, and a stage is empty, or has a
// member that can show something, unless no later one has such a member either.
func TestStagesShowSomething(t *testing.T) {
	const spec = "{stages: [{name: one, workloads: 1}, {name: a, selector: {matchLabels: {x: a}}}, {name: b, selector: {matchLabels: {x: b}}}]}"
	rapid.Check(t, func(t *rapid.T) {
		p := named(t, "shop/p", spec)
		var members []policy.Member
		has := map[string]bool{}
		for i := range rapid.IntRange(0, 6).Draw(t, "members") {
			m := policy.Member{
				Labels: labels.Set{"x": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "x")}, Claim: rapid.SampledFrom([]policy.Claim{policy.ClaimHas, policy.ClaimNext, policy.ClaimNone}).Draw(t, "claim"),
				Mute: rapid.Bool().Draw(t, "mute"), Name: fmt.Sprint(i),
			}
			has[m.Labels["x"]], members = true, append(members, m)
		}
		stages, tells, placed := p.Divide(members), false, 0
		for i, stage := range slices.Backward(stages) {
			shows := slices.ContainsFunc(stage, func(k int) bool { return !members[k].Mute && members[k].Claim != policy.ClaimNone })
			mute := slices.ContainsFunc(stage, func(k int) bool { return members[k].Mute })
			if i < len(stages)-1 && (mute || tells && !shows && (len(stage) > 0 || i == 0)) {
				t.Fatalf("stage %d of %v has nothing that can tell", i, stages)
			}
			tells, placed = tells || shows, placed+len(stage)
		}
		if placed != len(members) {
			t.Fatalf("%v has not all of %d members once", stages, len(members))
		}
	})
}

func TestAStageOfMutes(t *testing.T) {
	p := named(t, "shop/p", "{stages: [{name: dev, selector: {matchLabels: {x: dev}}}, {name: prod}]}")
	dev := policy.Member{Labels: labels.Set{"x": "dev"}, Claim: policy.ClaimNext, Mute: true, Name: "dev"}
	one, two := policy.Member{Claim: policy.ClaimNext, Name: "one"}, policy.Member{Claim: policy.ClaimNext, Name: "two"}
	if got := fmt.Sprint(p.Divide([]policy.Member{dev, one, two})); got != "[[1] [2 0]]" {
		t.Errorf("the stages are %s", got)
	}
	sick := policy.Member{Labels: dev.Labels, Claim: policy.ClaimNone, Name: "sick"}
	if got := fmt.Sprint(p.Divide([]policy.Member{sick, one, two})); got != "[[0 1] [2]]" {
		t.Errorf("the stages are %s", got)
	}
	if got := fmt.Sprint(p.Divide([]policy.Member{one, two})); got != "[[] [0 1]]" {
		t.Errorf("the stages are %s", got)
	}
}

func drawSome(t *rapid.T, all []policy.Member) []int {
	var some []int
	for i := range all {
		if rapid.Bool().Draw(t, "is a member") {
			some = append(some, i)
		}
	}
	return some
}

// stagesOf are the stages of all, -1 for those that are no members.
func stagesOf(p *policy.Policy, all []policy.Member, some []int) []int {
	members := make([]policy.Member, len(some))
	for i, k := range some {
		members[i] = all[k]
	}
	stages := slices.Repeat([]int{-1}, len(all))
	for s, places := range p.Divide(members) {
		for _, i := range places {
			stages[some[i]] = s
		}
	}
	return stages
}

func TestStatus(t *testing.T) {
	release := func(name string, phase rollout.Phase) policy.Release {
		return policy.Release{
			Release: content.Release{Object: content.Object{Kind: content.Secret, Namespace: "shop", Name: name}, Digest: "9676b5e0"}, Namespace: "shop",
			Progress: policy.Progress{Phase: phase, Updated: 1, Of: 3}, Reason: rollout.ReasonOrder, Waits: name + " is waiting",
			Stages: []policy.StageProgress{{Name: "first", Progress: policy.Progress{Phase: rollout.PhaseComplete, Updated: 1, Of: 1}}},
		}
	}
	many := make([]policy.Release, 40)
	for i := range many {
		many[i] = release(fmt.Sprint("s", i), rollout.PhaseWaiting)
	}
	const bad = "{maintenanceWindows: [{schedule: '* * * * *', durationSeconds: 1, timeZone: Mars}]}"
	for name, test := range map[string]struct {
		spec     string
		releases []policy.Release
		unpinned []string
		want     string
	}{
		"nothing is under way":    {"{}", nil, nil, "Complete 0 0  Ready True PolicyInForce Complete True Complete"},
		"one waits":               {"{}", []policy.Release{release("db", rollout.PhaseWaiting)}, nil, "Waiting 1 1 db is waiting Ready True PolicyInForce Complete False WaitingForPrevious"},
		"what failed counts most": {"{}", []policy.Release{release("a", rollout.PhaseProgressing), release("b", rollout.PhaseFailed)}, nil, "Failed 2 2 b is waiting Ready True PolicyInForce Complete False WaitingForPrevious"},
		"it has a bounded size":   {"{}", many, nil, "Waiting 40 16 s0 is waiting Ready True PolicyInForce Complete False WaitingForPrevious"},
		"a policy is not valid":   {bad, nil, nil, "Complete 0 0  Ready False InvalidInput Complete True Complete"},
		"a stage has no members":  {"{stages: [{name: a}]}", nil, nil, "Complete 0 0  Ready True PolicyInForce Complete True Complete"},
		"a workload has no pins":  {"{pinConfig: true}", nil, []string{"deployment/a", "deployment/b"}, "Complete 0 0  Ready False PinsMissing Complete True Complete"},
	} {
		t.Run(name, func(t *testing.T) {
			p := named(t, "shop/p", test.spec)
			report := &policy.Report{Releases: test.releases}
			for _, name := range test.unpinned {
				report.Unpinned.Add(name, "why")
			}
			writes := policy.Set{p}.Writes(now, map[*policy.Policy]*policy.Report{p: report})
			if len(writes) != 1 {
				t.Fatalf("%d writes", len(writes))
			}
			s := writes[0].Status()
			got := fmt.Sprint(s.Phase, " ", s.Underway, " ", len(s.Releases), " ", s.WaitingFor)
			for _, kind := range []string{"Ready", "Complete"} {
				c := apimeta.FindStatusCondition(s.Conditions, kind)
				got += fmt.Sprint(" ", kind, " ", c.Status, " ", c.Reason)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What is said of a release to a reader of the status is what was reported of it.
func TestAStatusIsReadAsReported(t *testing.T) {
	p := &v1alpha1.ConfigPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", Generation: 3}}
	if e := (policy.Set{policy.Read(p)}).Explain(); !e[0].Unobserved {
		t.Errorf("what has no status is %+v", e)
	}
	until := now.Add(time.Hour)
	is := policy.Release{
		Release:   content.Release{Object: content.Object{Kind: content.Secret, Namespace: "vault", Name: "db"}, Digest: "9676b5e"},
		Namespace: "shop", Progress: policy.Progress{Phase: rollout.PhaseWaiting, Updated: 1, Of: 5}, Reason: rollout.ReasonSoak,
		Waits: "stage first is ready; soaking until noon", Cause: rollout.Cause{Subject: "stage first", Does: "is ready", Why: "soaking until noon"}, Until: until,
		Stages: []policy.StageProgress{{Name: "first", Progress: policy.Progress{Phase: rollout.PhaseWaiting, Updated: 1, Of: 1}}, {Name: "rest", Progress: policy.Progress{Phase: rollout.PhaseWaiting, Of: 4}}},
	}
	set := policy.Set{policy.Read(p)}
	p.Status = set.Writes(now, map[*policy.Policy]*policy.Report{set[0]: {Releases: []policy.Release{is}}})[0].Status()
	read := policy.Set{policy.Read(p)}.Explain()
	is.Since = now
	if len(read) != 1 || read[0].Unobserved {
		t.Fatalf("%+v", read)
	}
	if diff := cmp.Diff([]policy.Release{is}, read[0].Releases); diff != "" {
		t.Errorf("(-reported +read)\n%s", diff)
	}
	if text := read[0].Releases[0].Text(); text != "stage 1 of 2 (first) is ready: soaking until noon" {
		t.Error(text)
	}
}
