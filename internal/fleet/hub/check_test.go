package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

// A cluster on which a check does not hold is skipped: it is no failure, does not hold up the others, and follows
// when the check holds.
func TestAClusterThatFailsACheckIsSkippedAndFollows(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a tier=2", "b", "c tier=1")
	spec := `selector: {}, strategy: Incremental, rollout: {maxUnreadyClusters: 1, onFailure: Rollback, checks: [
		{name: tier, expression: 'has(cluster.labels.tier) && cluster.labels.tier != "1"', message: label it with its tier}]}`
	w.module("v1", `selector: {}`)
	w.complete("a:v1 b:v1 c:v1")
	w.module("v2", spec)
	w.comes("a:v2 b:v1 c:v1")
	w.waits("Waiting", "skipped until check tier holds: label it with its tier")
	if s := w.status(); s.Summary.Skipped != 2 || s.Summary.Failed != 0 || s.GivenUp != nil {
		t.Errorf("%+v, %+v", s.Summary, s.GivenUp)
	}
	at := types.NamespacedName{Namespace: w.namespace, Name: app}
	if x, err := hub.ExplainCluster(t.Context(), w.client, model.KindModule, at, "b"); err != nil || x.Reason != decision.ReasonCheck {
		t.Errorf("%+v, %v", x, err)
	}
	w.barrier.Step(t, time.Hour) // no deadline runs
	w.comes("a:v2 b:v1 c:v1")
	w.still("two are skipped")
	for _, name := range []string{"b", "c"} {
		w.patch(&corev1.Secret{}, cluster.SecretName(name), `{"metadata":{"labels":{"tier":"2"}}}`)
	}
	w.complete("a:v2 b:v2 c:v2")
	w.player.atMost(1)
}

// What no cluster passes is assigned to none, and a rollback is not checked.
func TestARollbackIsNotChecked(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b")
	w.module("v1", everywhere)
	w.complete("a:v1 b:v1")
	const never = `selector: {}, strategy: Incremental, rollout: {onFailure: Rollback, checks: [{name: never, expression: 'cluster.name == "%s"'}]}`
	w.module("v2", fmt.Sprintf(never, "x"))
	w.waits("Waiting", "0 of 1 show that the target is good")
	w.comes("a:v1 b:v1")
	w.player.decree(v1alpha1.StateUpdating, "v2")
	w.module("v2", fmt.Sprintf(never, "a"))
	w.comes("a:v2! b:v1")
	w.module("v2", fmt.Sprintf(never, "x")) // the check does not hold any more on what has the revision
	w.player.decree(v1alpha1.StateFailed, "v2")
	w.waits("RolledBack", "a failed")
	w.comes("a:v1 b:v1")
}

// What a cluster serves is not believed before it has said so. It is asked again while it is skipped.
func TestAClusterIsAskedWhatItServes(t *testing.T) {
	w := newWorld(t)
	facts := cluster.NewFactBook(w.clock.Now)
	w.options.Facts = facts
	answers := make(chan *cluster.Facts)
	w.options.Assemblages = func(_ context.Context, mgr ctrl.Manager, _ *cluster.Directory) error {
		return mgr.Add(facts.RunWith(func(ctx context.Context, _ types.NamespacedName) *cluster.Facts {
			select {
			case f := <-answers:
				return f
			case <-ctx.Done():
				return &cluster.Facts{Problem: "stopped"}
			}
		}))
	}
	w.disturbed = true // the barrier does not know what clusters are asked
	w.manage()
	w.clusters("a")
	w.module("v1", `selector: {}, rollout: {checks: [{name: new, expression: 'cluster.version.minor >= 31 && "x.test/v1" in cluster.apis'}]}`)
	w.waits("Waiting", "it is not known yet what the cluster serves")
	old := &cluster.Facts{Major: 1, Minor: 30, Version: "v1.30.0"}
	answers <- old
	w.waits("Waiting", "is false (its Kubernetes is v1.30.0)")
	w.clock.Step(2 * time.Minute)
	w.bystander()
	answers <- &cluster.Facts{Problem: "no answer"}
	w.waits("Waiting", "it is not known what the cluster serves: no answer")
	w.clock.Step(2 * time.Minute)
	w.bystander()
	answers <- &cluster.Facts{Major: 1, Minor: 31, Version: "v1.31.0", APIs: map[string]bool{"x.test/v1": true}}
	w.complete("a:v1")
}

// An expression that cannot be understood stalls the module.
func TestAMistakeInACheck(t *testing.T) {
	w := newWorld(t)
	w.manage()
	for text, want := range map[string]string{
		`cluste.name == "a"`: "spec.rollout.checks[0].expression: ",
		`cluster.name + "a"`: "the variable is cluster",
	} {
		w.module("v1", fmt.Sprintf(`selector: {}, rollout: {checks: [{name: a, expression: %q}]}`, text))
		w.waits("Stalled", want)
	}
	w.clusters("a")
	w.module("v1", `selector: {}, rollout: {checks: [{name: a, expression: cluster.labels.none == "x"}]}`)
	w.waits("Waiting", "no such key: none")
	if strings.Contains(w.runs(), "v1") {
		t.Error(w.runs())
	}
}
