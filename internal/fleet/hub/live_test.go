package hub_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
)

const (
	everywhere = `selector: {}`
	oneByOne   = `selector: {}, strategy: Incremental, rollout: {progressDeadlineSeconds: 3600}`
	canary     = `selector: {}, strategy: Incremental, rollout: {progressDeadlineSeconds: 3600, maxUnreadyClusters: 100%,
		stages: [{name: canary, selector: {matchLabels: {canary: "true"}}, gates: [{name: approve}]}, {name: rest}]}`
)

func isConflict(err error) bool { return apierrors.IsConflict(err) }

// RFC: strategy Replace updates all clusters at the same time.
func TestRFCReplace(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a env=dev", "b env=dev", "c env=prod")
	w.module("v1", `selector: {matchLabels: {env: dev}}, strategy: Replace`)
	w.complete("a:v1 b:v1")
	w.player.decree(v1alpha1.StateUpdating, "v2")
	w.module("v2", `selector: {matchLabels: {env: dev}}, strategy: Replace`)
	w.comes("a:v2! b:v2!")
	w.player.decree(v1alpha1.StateSucceeded, "v2")
	w.complete("a:v2 b:v2")
	w.still("Replace has ended")
}

// A manifest in the old shape, without a strategy, means Replace.
func TestTheOldShapeMeansReplace(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b")
	m := &v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Name: app}}
	m.Spec.Selector = &metav1.LabelSelector{}
	m.Spec.Sync = &v1alpha1.Sync{Source: &v1alpha1.Source{Git: &v1alpha1.GitSource{URL: "https://x.test/a", Version: v1alpha1.GitVersion{Tag: "v1"}}}}
	w.create(m)
	w.complete("a:v1 b:v1")
	if s := w.status(); s.ObservedSync == nil || s.ObservedSync.Source.Git.Version.Tag != "v1" || s.Summary.Succeeded != 2 {
		t.Errorf("%+v", s)
	}
}

// RFC: strategy Incremental, at most N clusters unready at a time.
func TestRFCIncrementalAtMostSoManyUnready(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b", "c", "d", "e")
	spec := `selector: {}, strategy: Incremental, rollout: {maxUnreadyClusters: 2}`
	w.module("v1", spec)
	w.complete("a:v1 b:v1 c:v1 d:v1 e:v1")
	w.player.decree(v1alpha1.StateUpdating, "v2")
	w.module("v2", spec)
	w.waits("Progressing", "is updating")
	w.then(func() error {
		if n := strings.Count(w.runs(), ":v2!"); n != 2 {
			return fmt.Errorf("%d are updating", n)
		}
		return nil
	})
	w.bystander()
	if n := strings.Count(w.runs(), ":v2"); n != 2 {
		t.Errorf("%d are updating, 2 may be: %s", n, w.runs())
	}
	w.player.decree(v1alpha1.StateSucceeded, "v2")
	w.complete("a:v2 b:v2 c:v2 d:v2 e:v2")
	w.player.atMost(2)
	w.still("Incremental has ended")
}

// RFC, the other reading: one canary, then all others at the same time.
func TestRFCIncrementalOneCanaryThenAll(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b", "c")
	spec := `selector: {}, strategy: Incremental, rollout: {maxUnreadyClusters: 100%, stages: [{name: canary, clusters: 1}, {name: rest}]}`
	w.module("v1", spec)
	w.complete("a:v1 b:v1 c:v1")
	w.player.decree(v1alpha1.StateUpdating, "v2")
	w.module("v2", spec)
	w.waits("Progressing", "is updating")
	w.bystander()
	if n := strings.Count(w.runs(), ":v2!"); n != 1 {
		t.Errorf("want one canary: %s", w.runs())
	}
	w.player.decree(v1alpha1.StateSucceeded, "v2")
	w.complete("a:v2 b:v2 c:v2")
	for _, stage := range w.status().Stages {
		if stage.StartedAt == nil || stage.FinishedAt == nil || stage.FinishedAt.Before(stage.StartedAt) {
			t.Errorf("stage %s began %s and ended %s", stage.Name, stage.StartedAt, stage.FinishedAt)
		}
	}
}

// A gate: the rest waits until a user approves; one that is refused stops it.
func TestAGateIsDecidedByAUser(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a canary=true", "b", "c")
	w.module("v1", canary)
	w.decide("canary", metav1.ConditionTrue)
	w.complete("a:v1 b:v1 c:v1")
	w.module("v2", canary)
	w.waits("Waiting", "canary is waiting: gate approve is pending")
	w.comes("a:v2 b:v1 c:v1")
	w.still("waiting for a gate")
	w.decide("canary", metav1.ConditionFalse)
	w.waits("Failed", "gate approve was refused: said carol")
	w.decide("canary", metav1.ConditionTrue)
	w.complete("a:v2 b:v2 c:v2")
}

// A bad revision stops at the canary, and everything goes back automatically.
func TestABadRevisionIsRolledBack(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a canary=true", "b", "c")
	spec := `selector: {}, strategy: Incremental, rollout: {onFailure: Rollback, stages: [{name: canary, selector: {matchLabels: {canary: "true"}}}, {name: rest}]}`
	w.module("v1", spec)
	w.complete("a:v1 b:v1 c:v1")
	w.player.decree(v1alpha1.StateFailed, "v2")
	w.module("v2", spec)
	w.happens("a:v2")
	w.comes("a:v1 b:v1 c:v1")
	w.waits("RolledBack", "failed and was rolled back: all clusters are at")
	if told := w.player.told("v2"); told != "a" {
		t.Errorf("v2 got to %s", told)
	}
	w.still("it was rolled back")
	w.module("v3", spec)
	w.complete("a:v3 b:v3 c:v3")
	if h := w.status().History; len(h) < 3 || h[0].Outcome != "Complete" || h[0].ChangedBy == "" || h[0].ChangedBy != w.status().Rollout.ChangedBy || h[len(h)-2].Outcome != "RolledBack" || h[len(h)-2].UndoneBy != "spillway" {
		t.Errorf("history %+v", h)
	}
}

// Without onFailure a failed first stage blocks later ones until a user fixes it;
// a newer revision supersedes.
func TestAFailedFirstStageBlocksLaterOnes(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a canary=true", "b", "c")
	spec := `selector: {}, strategy: Incremental, rollout: {stages: [{name: canary, selector: {matchLabels: {canary: "true"}}}, {name: rest}]}`
	w.module("v1", spec)
	w.complete("a:v1 b:v1 c:v1")
	w.player.decree(v1alpha1.StateFailed, "v2")
	w.module("v2", spec)
	w.waits("Failed", "a failed: not healthy (HealthCheckFailed): Deployment web is not ready")
	if got := w.runs(); got != "a:v2! b:v1 c:v1" {
		t.Error(got)
	}
	if f := w.status().FailingClusters; len(f) != 1 || f[0].Name != "a" || f[0].Reason != "HealthCheckFailed" {
		t.Errorf("failing: %+v", f)
	}
	w.module("v3", spec)
	w.complete("a:v3 b:v3 c:v3")
	if told := w.player.told("v2"); told != "a" {
		t.Errorf("v2 got to %s", told)
	}
}

// Roll back, roll forward: targetRevision is a rollout to an older revision, under
// the same budget.
func TestRFCRollBackAndForward(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b", "c")
	w.module("v1", oneByOne)
	w.complete("a:v1 b:v1 c:v1")
	first := w.status().CurrentRevision
	w.module("v2", oneByOne)
	w.complete("a:v2 b:v2 c:v2")
	w.module("v2", oneByOne+`, targetRevision: `+first)
	w.complete("a:v1 b:v1 c:v1")
	w.player.atMost(1)
	w.module("v2", oneByOne+`, targetRevision: no-such`)
	w.waits("Stalled", `app has no revision "no-such"; choose from app-`)
	w.module("v2", oneByOne)
	w.complete("a:v2 b:v2 c:v2")
	if n := len(w.revisions()); n != 2 {
		t.Errorf("there are %d revisions", n)
	}
}

// Suspend: nothing new is assigned, what runs continues.
func TestRFCSuspend(t *testing.T) {
	w := oneOfTwoUpdating(t)
	w.module("v2", oneByOne+`, suspend: true`)
	w.then(func() error {
		if m := (&v1alpha1.Module{}); w.get(m, app) != nil || m.Status.ObservedGeneration != m.Generation {
			return errors.New("not seen")
		}
		return nil
	})
	w.player.decree(v1alpha1.StateSucceeded, "v2")
	w.waits("Paused", "the rollout is paused: spec.suspend is set")
	if n := strings.Count(w.runs(), ":v1"); n != 1 {
		t.Errorf("they run %s", w.runs())
	}
	w.clusters("c")
	w.still("it is suspended")
	w.module("v2", oneByOne)
	w.complete("a:v2 b:v2 c:v2")
}

// One bad cluster is pinned, and the rollout goes on.
func TestRFCPinABadClusterAndContinue(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b", "c")
	w.module("v1", oneByOne)
	w.complete("a:v1 b:v1 c:v1")
	w.hold("b", `{"by":"alice","reason":"its disk is full"}`)
	w.module("v2", oneByOne)
	w.complete("a:v2 b:v1 c:v2")
	if s := w.status().Summary; s.Held != 1 || s.Waiting != 1 {
		t.Errorf("summary %+v", s)
	}
	w.hold("b", "null")
	w.complete("a:v2 b:v2 c:v2")
}

// hold pins a cluster as a user does, by a patch of its sync.
func (w *world) hold(name, hold string) {
	w.t.Helper()
	w.then(func() error {
		a := &v1alpha1.ProxyAssemblage{}
		if err := w.get(a, name); err != nil {
			return err
		}
		sync := &a.Spec.Assemblage.Syncs[slices.IndexFunc(a.Spec.Assemblage.Syncs, func(s v1alpha1.ProxySync) bool { return s.Name == app })]
		sync.Hold = nil
		if hold != "null" {
			sync.Hold = &v1alpha1.Hold{By: "alice", Reason: "its disk is full"}
		}
		return w.client.Update(w.t.Context(), a)
	})
}

// What a module says in the words of Flux is part of its revision, and reaches the clusters as it is said; a mistake in
// it stops the module before anything is assigned.
func TestWhatIsSaidInTheWordsOfFlux(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a")
	w.module("v1", everywhere)
	w.complete("a:v1")
	first := w.status().CurrentRevision
	handed := func(spec string) {
		w.patch(&v1alpha1.Module{}, app, `{"spec": {"template": {"spec": {"sync": {"package": {"kustomize": {"spec": `+spec+`}}}}}}}`)
	}
	handed(`{"targetNamespace": "shop", "patches": [{"patch": "x"}]}`)
	w.complete("a:v1")
	w.still("it was assigned")
	a := &v1alpha1.ProxyAssemblage{}
	if err := w.get(a, "a"); err != nil {
		t.Fatal(err)
	}
	if is := string(a.Spec.Assemblage.Syncs[0].Package.Kustomize.Spec.Raw); is != `{"patches":[{"patch":"x"}],"targetNamespace":"shop"}` || w.status().CurrentRevision == first {
		t.Errorf("the cluster is assigned %s at %s", is, w.status().CurrentRevision)
	}
	handed(`{"targetNamespaces": "shop"}`)
	w.waits("Stalled", "spec.template.spec.sync.package.kustomize.spec.targetNamespaces: the Kustomization of Flux has no such field; it has targetNamespace")
}
