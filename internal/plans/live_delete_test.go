package plans_test

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// stuckCleanup has a cleanup plan that never completes without an action.
const stuckCleanup = `
version: "1"
tasks:
- {name: app, kind: Apply, spec: {resources: [app.yaml]}}
- {name: stuck, kind: Dummy, spec: {wantErr: true}}
templates: {app.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}"}
plans:
  deploy: {phases: [{name: main, steps: [{name: app, tasks: [app]}]}]}
  cleanup: {phases: [{name: main, steps: [{name: stuck, tasks: [stuck]}]}]}
`

// An Instance is cleaned up before it goes, whatever ran when it was deleted.
func TestDeletion(t *testing.T) {
	c := noticed(t)
	c.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}`)
	c.remove(&v1beta1.Instance{}, "web")
	c.gone(&v1beta1.Instance{}, "web")
	if c.data("web") != nil {
		t.Error("what cleanup deletes still exists")
	}
}

// A cleanup that never ends can be given up; what it left is removed with its owner.
func TestDeletionIsGivenUp(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", stuckCleanup)
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
	c.remove(&v1beta1.Instance{}, "web")
	c.eventually(func() error {
		if got := c.now("web").Status.AggregatedStatus.ActivePlan; got != "cleanup" {
			return fmt.Errorf("plan %q runs, %+v", got, c.now("web").Status.History)
		}
		return nil
	})
	c.change("web", annotate(vocabulary.AbandonPlan.Native, string(c.now("web").Status.Execution.UID)))
	c.gone(&v1beta1.Instance{}, "web")
	c.gone(&corev1.ConfigMap{}, "app")
}

// TestUnusedContentsAreDeleted checks that of an OperatorVersion that is edited again
// and again the newest contents are kept, and the one with which a plan runs.
func TestUnusedContentsAreDeleted(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", one(web))
	c.manage()
	c.instance("stuck", "app-1", "P", "never-ready")
	c.waits("stuck", "Available: 0/1")
	began := c.now("stuck").Status.Execution.ContentHash
	ov := &v1beta1.OperatorVersion{}
	for n := range choice.PinsKept + 3 {
		if err := c.get(ov, "app-1"); err != nil {
			t.Fatal(err)
		}
		ov.Spec.Templates["t.yaml"] = fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Name }}'}, data: {n: '%d'}}", n)
		if err := c.client.Update(t.Context(), ov); err != nil {
			t.Fatal(err)
		}
		c.instance(fmt.Sprintf("web-%d", n), "app-1")
		c.rests(fmt.Sprintf("web-%d", n), "deploy Complete")
	}
	pins := &appsv1.ControllerRevisionList{}
	c.eventually(func() error {
		c.list(pins)
		if n := len(pins.Items); n > choice.PinsKept+1 {
			return fmt.Errorf("%d contents are kept", n)
		}
		return nil
	})
	names := []string{}
	for i := range pins.Items {
		names = append(names, pins.Items[i].Name)
	}
	for _, hash := range []string{began, choice.ContentHash(&ov.Spec)} {
		if !slices.Contains(names, choice.PinName("app-1", hash)) {
			t.Errorf("content %s is not among those that are kept: %v", hash, names)
		}
	}
}
