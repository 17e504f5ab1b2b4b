package hub_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// What a cluster is evidence of, and what becomes of one that is none: see hub/decision/evidence.go.

// A suspended cluster is not assigned the revision first, and does not make it fail: it is skipped, counted,
// and caught up with once it is resumed.
func TestASuspendedClusterIsSkippedAndCaughtUpLater(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b", "c", "d", "e")
	spec := `selector: {}, strategy: Incremental, rollout: {maxUnreadyClusters: 1, onFailure: Rollback, orderBy: {labelKey: none}}`
	w.module("v1", spec)
	w.complete("a:v1 b:v1 c:v1 d:v1 e:v1")
	w.player.decree(suspended, "c v1", "c v2")
	w.module("v2", spec)
	w.comes("a:v2 b:v2 c:v1! d:v2 e:v2")
	w.waits("Waiting", "c is waiting: skipped until it is resumed: Kustomization app is suspended")
	if s := w.status(); s.Summary.Skipped != 1 || s.Summary.Failed != 0 || s.CurrentRevision != s.TargetRevision {
		t.Errorf("%+v, good %s", s.Summary, s.CurrentRevision)
	}
	w.barrier.Step(t, time.Hour) // no deadline runs
	w.comes("a:v2 b:v2 c:v1! d:v2 e:v2")
	w.still("one is suspended")
	w.player.decree(v1alpha1.StateSucceeded, "c v1", "c v2")
	w.complete("a:v2 b:v2 c:v2 d:v2 e:v2")
}

// Clusters that do not answer take no place in the budget and do not fail the revision.
func TestOfflineClustersAreSkipped(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b", "c", "d", "e", "f")
	spec := `selector: {}, strategy: Incremental, rollout: {maxUnreadyClusters: 1, onFailure: Rollback}`
	w.module("v1", spec)
	w.complete("a:v1 b:v1 c:v1 d:v1 e:v1 f:v1")
	w.barrier.Step(t, time.Hour)
	for _, name := range []string{"a", "c", "e"} {
		w.player.decree(v1alpha1.StateUnreachable, name+" v1", name+" v2")
	}
	w.module("v2", spec)
	w.comes("a:v1! b:v2 c:v1! d:v2 e:v1! f:v2")
	w.player.atMost(1)
	w.barrier.Step(t, time.Hour)
	w.comes("a:v1! b:v2 c:v1! d:v2 e:v1! f:v2")
	for _, name := range []string{"a", "c", "e"} {
		w.player.decree(v1alpha1.StateSucceeded, name+" v1", name+" v2")
	}
	w.complete("a:v2 b:v2 c:v2 d:v2 e:v2 f:v2")
	w.player.atMost(1)
}

// A cluster that joins and does not become ready undoes no rollout: it was not ready before it was assigned
// anything.
func TestAClusterThatJoinsSickUndoesNothing(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b", "c")
	spec := `selector: {}, strategy: Incremental, rollout: {maxUnreadyClusters: 1, onFailure: Rollback}`
	w.module("v1", spec)
	w.complete("a:v1 b:v1 c:v1")
	w.player.decree(v1alpha1.StateFailed, "sick v1", "sick v2")
	w.clusters("sick")
	w.comes("a:v1 b:v1 c:v1 sick:v1!")
	w.module("v2", spec)
	w.comes("a:v2 b:v2 c:v2 sick:v2!")
	if s := w.status(); s.RolledBack != "" || s.CurrentRevision != s.TargetRevision {
		t.Errorf("%s", w.says())
	}
	w.barrier.Step(t, time.Hour)
	w.waits("Waiting", "sick is up to date but not healthy (HealthCheckFailed): Deployment web is not ready")
	w.comes("a:v2 b:v2 c:v2 sick:v2!")
	w.player.decree(v1alpha1.StateSucceeded, "sick v2")
	w.complete("a:v2 b:v2 c:v2 sick:v2")
}

// What a module depends on is not ready in the only canary, for longer than any deadline: the revision was not
// tried there, so it is not given up, nor does it go on.
func TestADependencyThatIsNotReadyIsNoEvidence(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a stage=canary", "b")
	spec := `selector: {}, strategy: Incremental, rollout: {onFailure: Rollback, progressDeadlineSeconds: 60, stages: [{name: canary, selector: {matchLabels: {stage: canary}}}, {name: rest}]}`
	w.module("v1", spec)
	w.complete("a:v1 b:v1")
	w.player.decree(dependent, "a v2")
	w.module("v2", spec)
	w.comes("a:v2! b:v1")
	w.barrier.Step(t, time.Hour)
	w.comes("a:v2! b:v1")
	if s := w.status(); s.RolledBack != "" {
		t.Errorf("it was given up: %s", w.says())
	}
	w.player.decree(v1alpha1.StateSucceeded, "a v2")
	w.complete("a:v2 b:v2")
}

// A stage whose selector has a typo, or whose only cluster has lost its label, holds the stages after it.
func TestAStageWithoutClustersHolds(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a stage=canary", "b", "c")
	spec := func(canary, more string) string {
		return fmt.Sprintf(`selector: {}, strategy: Incremental, rollout: {stages: [{name: canary, selector: {matchLabels: {stage: %s}}%s}, {name: rest}]}`, canary, more)
	}
	w.module("v1", spec("canary", ""))
	w.complete("a:v1 b:v1 c:v1")
	w.module("v2", spec("canray", ""))
	w.waits("Waiting", "canary is waiting: 0 of 1 show that the target is good, nothing belongs to it")
	w.comes("a:v1 b:v1 c:v1")
	w.module("v2", spec("canary", ""))
	w.complete("a:v2 b:v2 c:v2")
	w.module("v3", spec("canray", ", allowEmpty: true"))
	w.complete("a:v3 b:v3 c:v3")
}

// A canary that can tell nothing completes no stage, and another one of the stage does.
func TestTheCanaryIsOneThatCanTell(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b", "c")
	spec := `selector: {}, strategy: Incremental, rollout: {onFailure: Rollback, stages: [{name: canary, clusters: 1}, {name: rest}]}`
	w.module("v1", spec)
	w.complete("a:v1 b:v1 c:v1")
	w.player.decree(suspended, "a v1", "a v2", "b v1", "b v2")
	w.player.decree(v1alpha1.StateFailed, "c v2")
	w.module("v2", spec)
	w.comes("a:v1! b:v1! c:v1")
	if told := w.player.told("v2"); told != "c" || w.status().RolledBack == "" {
		t.Errorf("v2 was assigned to %s: %s", told, w.says())
	}
	w.player.decree(v1alpha1.StateSucceeded, "a v1", "b v1")
	w.waits("RolledBack", "failed and was rolled back")
}

// Labels that are changed one after the other take away no more than all at a time would, without an approval.
func TestRemovalsCountOverTime(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a env=prod", "b env=prod", "c env=prod", "d env=prod")
	w.module("v1", `selector: {matchLabels: {env: prod}}, strategy: Incremental, rollout: {maxRemoved: 25%}`)
	w.complete("a:v1 b:v1 c:v1 d:v1")
	leaves := func(name string) {
		w.patch(&corev1.Secret{}, cluster.SecretName(name), `{"metadata":{"labels":{"env":"dev"}}}`)
	}
	leaves("a")
	w.complete("b:v1 c:v1 d:v1")
	leaves("b")
	w.waits("Waiting", "1 of 3 are to be removed after 1 lately, more than 1 (maxRemoved); to approve: ")
	w.comes("b:v1 c:v1 d:v1")
	w.barrier.Step(t, time.Hour)
	w.complete("c:v1 d:v1")
	w.still("an hour has passed")
}

// An approval is for one rollout: the same revision, rolled out again later, waits for another one.
func TestAnApprovalIsForOneRollout(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a canary=true", "b")
	w.module("v1", canary)
	w.decide("canary", metav1.ConditionTrue)
	w.complete("a:v1 b:v1")
	w.module("v2", canary)
	w.decide("canary", metav1.ConditionTrue)
	w.complete("a:v2 b:v2")
	w.module("v1", canary)
	w.comes("a:v1 b:v2")
	w.waits("Waiting", "gate approve is pending")
	w.decide("canary", metav1.ConditionTrue)
	w.complete("a:v1 b:v1")
	w.still("it was approved")
}

// The history, the status and every cluster tell why a revision came back.
func TestItIsSaidWhyARevisionCameBack(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b", "c")
	spec := `selector: {}, strategy: Incremental, rollout: {onFailure: Rollback}`
	w.module("v1", spec)
	w.complete("a:v1 b:v1 c:v1")
	w.player.decree(v1alpha1.StateFailed, "v2")
	w.module("v2", spec)
	w.comes("a:v1 b:v1 c:v1")
	w.waits("RolledBack", " failed: Deployment web is not ready")
	s := w.status()
	given := s.GivenUp
	if given == nil || given.Revision != s.RolledBack || !slices.Contains([]string{"a", "b", "c"}, given.Cluster) || given.Message != "Deployment web is not ready" {
		t.Fatalf("%+v", given)
	}
	i := slices.IndexFunc(s.History, func(p v1alpha1.PastRollout) bool { return p.Revision == s.RolledBack })
	if i < 0 || s.History[i].Message != given.Cluster+" failed: Deployment web is not ready" {
		t.Errorf("%+v", s.History)
	}
	if r := s.Rollout; r == nil || r.Phase != "RolledBack" || r.Target != s.CurrentRevision || !strings.Contains(r.WaitingFor, given.Cluster+" failed: Deployment web is not ready") {
		t.Errorf("the record is %+v", r)
	}
	w.isSeenByAViewer()
	w.then(func() error {
		list := &v1alpha1.ProxyAssemblageList{}
		if err := w.client.List(t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if sync := &list.Items[i].Spec.Assemblage.Syncs[0]; sync.GivenUp == nil || sync.GivenUp.Revision != s.RolledBack {
				return fmt.Errorf("%s has no copy: %+v", list.Items[i].Name, sync.GivenUp)
			}
		}
		return nil
	})
	w.still("it was given up")
	w.player.decree(v1alpha1.StateSucceeded, "v3")
	w.module("v3", spec)
	w.complete("a:v3 b:v3 c:v3")
	if s := w.status(); s.GivenUp != nil || s.RolledBack != "" {
		t.Errorf("%+v", s.GivenUp)
	}
}

// A cluster whose Secret is gone blocks no later rollout, and it is said how to have it forgotten. One that the
// rollout itself took down keeps its place.
func TestAClusterWhoseSecretIsGoneBlocksNoLaterRollout(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b", "c")
	spec := `selector: {}, strategy: Incremental, rollout: {maxUnreadyClusters: 1}`
	w.module("v1", spec)
	w.complete("a:v1 b:v1 c:v1")
	w.remove(&corev1.Secret{}, cluster.SecretName("c"))
	w.player.decree(v1alpha1.StateUnreachable, "c v1")
	w.module("v2", spec)
	w.comes("a:v2 b:v2 c:v1!")
	if s := w.status(); s.CurrentRevision != s.TargetRevision {
		t.Errorf("%s", w.says())
	}
	e, err := hub.Explain(t.Context(), w.client, w.options, model.KindModule, client.ObjectKey{Namespace: w.namespace, Name: app})
	object := "proxyassemblage c -n " + w.namespace
	if command := "kubectl annotate " + object + " spillway.dev/abandon-cluster=true && kubectl delete " + object; err != nil || !strings.Contains(strings.Join(e.Notes, " "), command) {
		t.Errorf("%v, %v", e.Notes, err)
	}
	w.player.decree(v1alpha1.StateUpdating, "a v3", "b v3")
	w.module("v3", spec)
	w.waits("Progressing", "is updating")
	down := strings.Fields(w.player.told("v3"))[0]
	w.remove(&corev1.Secret{}, cluster.SecretName(down))
	w.waits("Waiting", "kubectl annotate proxyassemblage "+down)
	if told := w.player.told("v3"); told != down {
		t.Errorf("v3 was assigned to %s while %s is unknown", told, down)
	}
}

// isSeenByAViewer tells that a user who may read the module alone sees what the manager has recorded.
func (w *world) isSeenByAViewer() {
	w.t.Helper()
	user := "viewer-of-" + w.namespace
	testenv.Grant(w.t, w.client, w.namespace, user, []rbacv1.PolicyRule{
		{APIGroups: []string{"fleet.squaremo.dev"}, Resources: []string{"modules", "bootstrapmodules"}, Verbs: []string{"get", "list"}},
	})
	viewer, err := client.New(testenv.Shared().ConfigAs(user), client.Options{Scheme: w.client.Scheme()})
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := hub.Status(w.t.Context(), viewer, w.options, w.namespace)
	if s := w.status(); err != nil || len(all) != 1 || all[0].Phase != s.Phase || all[0].Sentence != s.WaitingFor || all[0].Rollout == nil {
		w.t.Errorf("the viewer sees %+v, %v; the status says %s: %s", all, err, s.Phase, s.WaitingFor)
	}
}
