package hub_test

import (
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

// retry is "spillway retry module/app".
func (w *world) retry() error {
	w.t.Helper()
	ref := describe.Ref{Kind: model.KindModule, Namespace: w.namespace, Name: app}
	_, err := act.Do(w.t.Context(), w.client, act.Request{Verb: act.Retry, Ref: ref}, act.Author{By: "carol", Reason: "it was the registry", At: metav1.Now()})
	return err
}

func (w *world) retried() {
	w.t.Helper()
	if err := w.retry(); err != nil {
		w.t.Fatal(err)
	}
}

// assigned is how often a cluster was assigned a tag.
func (w *world) assigned(cluster, tag string) (n int) {
	w.player.mu.Lock()
	defer w.player.mu.Unlock()
	for _, told := range w.player.story {
		if told == cluster+":"+tag {
			n++
		}
	}
	return n
}

// A revision that was given up is rolled out once more for a retry: it fails again, is given up again, and neither
// time nor another manager repeats that. The next retry, of what works by then, gets everywhere.
func TestARetryIsForOneRollout(t *testing.T) {
	w := newWorld(t)
	stop := w.manage()
	w.clusters("a canary=true", "b")
	spec := `selector: {}, strategy: Incremental, rollout: {onFailure: Rollback, stages: [{name: canary, selector: {matchLabels: {canary: "true"}}}, {name: rest}]}`
	w.module("v1", spec)
	w.complete("a:v1 b:v1")
	if err := w.retry(); err == nil || !strings.Contains(err.Error(), "module/app has given up no revision: nothing was changed") {
		t.Fatal(err)
	}
	w.player.decree(v1alpha1.StateFailed, "v2")
	w.module("v2", spec)
	w.waits("RolledBack", "change the template, or try it once more: spillway retry module/app -n "+w.namespace)
	w.comes("a:v1 b:v1")
	first := w.status().GivenUp

	w.retried()
	w.waits("RolledBack", "failed and was rolled back: all clusters are at")
	if second := w.status().GivenUp; second == nil || second.At.Equal(&first.At) {
		t.Fatalf("it was not tried: %+v", second)
	}
	stop()
	w.manage()
	w.barrier.Wait(t)
	w.barrier.Step(t, time.Hour)
	w.comes("a:v1 b:v1")
	if n := w.assigned("a", "v2"); n != 2 {
		t.Errorf("a was assigned v2 %d times", n)
	}
	if w.assigned("b", "v2") != 0 {
		t.Error("b was assigned what had failed")
	}

	w.player.decree(v1alpha1.StateSucceeded, "v2")
	w.retried()
	w.complete("a:v2 b:v2")
	if s := w.status(); s.RolledBack != "" || s.GivenUp != nil || s.Retried != nil || s.CurrentRevision != revisionOf("v2") {
		t.Errorf("%+v", s)
	}
	w.still("it is complete, and the annotation remains")
}

// approves decides the gate of a tag, as a person does who may patch rolloutgates/status alone.
func (w *world) approves(tag string) {
	w.t.Helper()
	for _, g := range w.gates() {
		if g.Spec.Revision != revisionOf(tag) {
			continue
		}
		apimeta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{Type: spillway.GatePassed, Status: "True", Reason: "Approved", Message: "the alert was wrong"})
		if err := w.client.Status().Update(w.t.Context(), &g); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	w.t.Fatal("there is no gate for " + tag)
}

// The gate of which the refusal gave a revision up is approved after all: that is the approval of one more rollout.
func TestAnApprovalAfterARefusalIsForOneRollout(t *testing.T) {
	w := newWorld(t)
	w.manage()
	spec := strings.Replace(canary, "{name: approve}", "{name: approve, onRefusal: Rollback}", 1)
	w.clusters("a canary=true", "b")
	w.module("v1", spec)
	w.decide("canary", metav1.ConditionTrue)
	w.complete("a:v1 b:v1")
	w.module("v2", spec)
	w.comes("a:v2 b:v1")
	w.decide("canary", metav1.ConditionFalse)
	w.waits("RolledBack", "failed and was rolled back")
	if g := w.status().GivenUp; g == nil || g.Gate == "" || g.Cluster != "" {
		t.Fatalf("%+v", g)
	}
	w.approves("v2")
	w.complete("a:v2 b:v2")
	if n := w.assigned("a", "v2"); n != 2 {
		t.Errorf("a was assigned v2 %d times", n)
	}
}

// A cluster has failed: the approval of a gate, for which it takes no permission to edit the module, ends no such verdict.
func TestAnApprovalEndsNoVerdictOfACluster(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a canary=true", "b")
	spec := strings.Replace(canary, "rollout: {", "rollout: {onFailure: Rollback, ", 1)
	w.module("v1", spec)
	w.decide("canary", metav1.ConditionTrue)
	w.complete("a:v1 b:v1")
	w.player.decree(v1alpha1.StateFailed, "v2")
	w.module("v2", spec)
	w.waits("RolledBack", "failed and was rolled back")
	w.approves("v2")
	w.comes("a:v1 b:v1")
	w.still("an approval is no retry")
}
