package config_test

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/pin"
)

// selected is a world with pins in the namespaces that have its label, as its own has.
func selected(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.label("on")
	n, err := pin.Flags{Selector: "pins-of-" + w.namespace + "=on"}.Namespaces()
	if err != nil {
		t.Fatal(err)
	}
	pinnableIn(w, n)
	return w
}

// label sets the label of the namespace by which it has pins if it is on.
func (w *world) label(value string) {
	w.t.Helper()
	ns := &corev1.Namespace{}
	ns.Name = w.namespace
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"pins-of-`+w.namespace+`":"`+value+`"}}}`))
	if err := w.client.Patch(w.t.Context(), ns, patch); err != nil {
		w.t.Fatal(err)
	}
}

// A namespace gets pins with its label, and has none without it, while the manager runs. Losing it rolls
// nothing: the pins stay in the Pod template until the next change, as those of one that is not named
// any more.
func TestANamespaceGetsAndLosesPinsByItsLabel(t *testing.T) {
	w := selected(t)
	w.label("off")
	w.secret("db", "p", "1")
	w.apply(workload("Deployment", "app", envFrom(secretRef("db")), native+"pin-config", "true"))
	w.manage()
	first := w.hashed("app", "")
	w.saysEventually("app", "its labels do not match --pin-namespace-selector=pins-of-"+w.namespace+"=on")
	if err := want("", w.pinsOf("Deployment", "app")); err != nil {
		t.Error(err)
	}

	w.label("on")
	pins := w.pinnedAgain("Deployment", "app", "")
	w.rests(func() {
		if err := errors.Join(want("", w.condition("app")), want(first, w.hash("app")), w.get(&corev1.Secret{}, snapshotOf(t, pins))); err != nil {
			t.Error(err)
		}
	})
	revisions := w.replicaSets("app")

	w.label("off")
	w.saysEventually("app", "its labels do not match")
	w.remove(&corev1.Secret{}, snapshotOf(t, pins)) // which the manager restored
	w.rests(func() {
		if err := errors.Join(want(pins, w.pinsOf("Deployment", "app")), want(revisions, w.replicaSets("app")), want(0, len(w.snapshots()))); err != nil {
			t.Error(err)
		}
	})

	w.secret("db", "p", "2")
	w.hashed("app", first)
	w.settledWith("app", revisions+1)
	w.rests(func() {
		if err := errors.Join(want("", w.pinsOf("Deployment", "app")), want(revisions+1, w.replicaSets("app"))); err != nil {
			t.Error(err)
		}
	})
}

// A Job that waits for its config starts without pins once its namespace has none: nothing else would
// let it start.
func TestAJobIsNotSuspendedForPinsThatItCannotGet(t *testing.T) {
	w := selected(t)
	w.manage()
	w.apply(job("first", "backoffLimit: 10"))
	w.eventually(func() error { return want("waiting: Secret db not found", w.job("first").Annotations[jobPins]) })
	w.label("off")
	w.eventually(func() error {
		return want("set without pins: pins are not enabled in namespace "+w.namespace+": its labels do not match --pin-namespace-selector=pins-of-"+w.namespace+"=on", w.job("first").Annotations[jobPins])
	})
	if s := w.job("first").Spec.Suspend; s == nil || *s {
		t.Error("it is suspended")
	}
}

// The next manager finds the labels as they are; a snapshot is collected where there are pins.
func TestAManagerStartsWithTheLabelsOfNamespaces(t *testing.T) {
	w := selected(t)
	w.options.Now = later
	w.secret("db", "p", "1")
	w.apply(workload("Deployment", "app", envFrom(secretRef("db")), native+"pin-config", "true"))
	w.manage()
	w.pinnedAgain("Deployment", "app", "")
	w.halt()
	w.manage()
	w.remove(&appsv1.Deployment{}, "app")
	w.eventually(func() error { return want(0, len(w.snapshots())) })
}
