package hub_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/ring"
)

// A module for no cluster is not ready, and says why, unless it may be for none.
func TestAModuleForNoClusterIsNotReady(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a env=dev")
	w.module("v1", `selector: {matchLabels: {env: prod}}`)
	w.unready(string(decision.ReasonNoClusters), "spec.selector matches none of the 1 clusters in the namespace")
	w.capiCluster("b env=prod", false)
	w.unready(string(decision.ReasonNoClusters), "none of the 1 clusters that spec.selector matches is ready: the control plane of b must be initialized")
	w.module("v1", `allowEmpty: true, selector: {matchLabels: {env: prod}}`)
	w.complete("")
	w.initialize("b", true)
	w.complete("b:v1")
}

// unready waits until the module is not ready for a reason.
func (w *world) unready(reason, text string) {
	w.t.Helper()
	w.then(func() error {
		c := apimeta.FindStatusCondition(w.status().Conditions, ring.ConditionReady)
		if c == nil || c.Status != "False" || c.Reason != reason || !strings.Contains(c.Message, text) {
			return fmt.Errorf("want Ready=False, %s, %q: %+v", reason, text, c)
		}
		return nil
	})
}

// A mistake in the selector takes nothing away without an approval and says so by an
// Event; and once all are gone the module is neither complete nor ready.
func TestASelectorThatMatchesNothingIsNoSuccess(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a env=prod", "b env=prod", "c env=prod")
	w.module("v1", `selector: {matchLabels: {env: prod}}`)
	w.complete("a:v1 b:v1 c:v1")
	w.module("v1", `selector: {matchLabels: {env: porduction}}`)
	w.unready("RemovalNotApproved", "3 of 3 are to be removed")
	w.eventually(func() error { // it is written beside the passes
		events := w.events()
		if !strings.Contains(events, "RemovalNotApproved") {
			return fmt.Errorf("no Event says so: %s", events)
		}
		return nil
	})
	w.bystander()
	if got := w.runs(); got != "a:v1 b:v1 c:v1" {
		t.Fatalf("they run %s", got)
	}
	w.patch(&v1alpha1.Module{}, app, fmt.Sprintf(`{"metadata":{"annotations":{"spillway.dev/approve-removal":%q}}}`, w.status().Removal.Approval))
	w.comes("")
	w.unready(string(decision.ReasonNoClusters), "spec.selector matches none of the 3 clusters")
}

// events are the reasons and notes of all Events in the namespace.
func (w *world) events() string {
	w.t.Helper()
	list := &corev1.EventList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	var lines []string
	for i := range list.Items {
		lines = append(lines, list.Items[i].Reason+": "+list.Items[i].Message)
	}
	return strings.Join(lines, "\n")
}

// Without Flux on the hub nothing that a BootstrapModule assigns is applied, and it says so.
func TestABootstrapModuleSaysThatFluxIsMissing(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a")
	w.apply(model.KindBootstrap, "v1", oneByOne)
	w.then(func() error {
		m := &v1alpha1.BootstrapModule{}
		if err := w.get(m, app); err != nil || !strings.Contains(m.Status.WaitingFor, "a is updating: not applied: the hub does not know the kinds of Flux (Kustomization") {
			return fmt.Errorf("it says %q: %w", m.Status.WaitingFor, err)
		}
		return nil
	})
}

// The budget of the module as a whole counts what is unready in any stage.
func TestTheBudgetOfTheModuleAsAWhole(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.clusters("a stage=first", "b stage=first", "c stage=then", "d stage=then")
	spec := `selector: {}, strategy: Incremental, rollout: {maxUnreadyClusters: 2, maxUnreadyTotal: 1, stages: [{name: first, selector: {matchLabels: {stage: first}}}, {name: then}]}`
	w.module("v1", spec)
	w.complete("a:v1 b:v1 c:v1 d:v1")
	w.player.decree(v1alpha1.StateUpdating, "v2")
	w.module("v2", spec)
	w.waits("Progressing", "is updating: updating")
	w.bystander()
	if names := w.movedTo("v2"); len(strings.Fields(names)) != 1 {
		t.Errorf("of at most one these are at v2: %s", names)
	}
	w.player.decree(v1alpha1.StateSucceeded, "v2")
	w.complete("a:v2 b:v2 c:v2 d:v2")
	w.player.atMost(1)
}
