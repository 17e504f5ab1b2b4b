package config_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

const pinsAndReturns = "pinConfig: true\n  onFailure: Rollback\n  " + oneFirst

// plainly are Deployments that share the Secret db, and of which only a policy says that they
// keep their config.
func plainly(w *world, names ...string) *kubelets {
	w.t.Helper()
	k := startKubelets(w)
	w.secret("db", "p", "good")
	for _, name := range names {
		w.apply(still(deployment(name, envFrom(secretRef("db")))))
	}
	return k
}

// A policy lets workloads keep their config, and gives the one that fails with a change its
// previous config back. No other one runs the bad value; a good value gets to all.
func TestAPolicyPinsAndReturns(t *testing.T) {
	w := newWorld(t)
	pinnable(w)
	w.policy("staged", pinsAndReturns)
	k := plainly(w, "app1", "app2", "app3")
	w.apply(still(deployment("own", envFrom(secretRef("db")), native+"pin-config", "false")))
	w.manage()
	first := w.pinnedAgain("Deployment", "app1", "")
	for _, name := range []string{"app2", "app3"} {
		if pins := w.pinnedAgain("Deployment", name, ""); pins != first {
			t.Errorf("%s has the pins %s, and app1 %s", name, pins, first)
		}
	}
	w.ready("own", "app1", "app2", "app3")
	w.phase("staged", "Complete")

	w.secret("db", "p", "bad")
	w.isBack("Deployment", "app1", first)
	w.readyWith("app1", snapshotOf(t, first), 1)
	r := w.phase("staged", "Failed")
	if r.Stages[0].Phase != "Failed" {
		t.Errorf("release %+v", r)
	}
	w.stopped("app1", "app2", "app3", "own")
	w.settled()
	if ran := k.ranWith("bad"); !slices.Equal(ran, []string{"app1"}) {
		t.Errorf("%v ran the bad value", ran)
	}

	w.secret("db", "p", "good2")
	second := w.pinnedAgain("Deployment", "app1", first)
	w.eventually(func() error {
		return errors.Join(want(second, w.pinsOf("Deployment", "app2")), want(second, w.pinsOf("Deployment", "app3")), want("", w.pinsOf("Deployment", "own")))
	})
	w.ready("own", "app1", "app2", "app3")
	w.phase("staged", "Complete")
}

// What a policy asks for and is not possible is said on the policy. The workloads are rolled
// without pins. The end of the policy rolls nothing.
func TestAPolicyWithoutPins(t *testing.T) {
	w := newWorld(t)
	w.policy("staged", pinsAndReturns)
	plainly(w, "app1", "app2")
	w.manage()
	w.ready("app1", "app2")
	said := func(text string) {
		t.Helper()
		w.eventually(func() error {
			c := apimeta.FindStatusCondition(w.status("staged").Conditions, "Stalled")
			if c == nil || c.Status != "True" || c.Reason != "PinsMissing" || !strings.Contains(c.Message, text) {
				return fmt.Errorf("the condition is %+v, want %q", c, text)
			}
			return nil
		})
	}
	said("deployment/app1: pinConfig of ConfigPolicy " + w.namespace + "/staged has no effect: pins are not enabled in namespace")
	if c := w.condition("app1"); c != "" {
		t.Errorf("the workload says %s", c)
	}
	if e := w.explain("app1"); len(e.Unpinned) != 1 || !strings.Contains(e.Unpinned[0], "pins are not enabled") {
		t.Errorf("explain says %q", e.Unpinned)
	}
	w.policy("staged", "onFailure: Rollback")
	said("deployment/app1: onFailure: Rollback of ConfigPolicy " + w.namespace + "/staged has no effect: the workload does not keep its config; set pinConfig: true; and 1 more")
	before := w.hash("app1")
	w.policy("staged", "onFailure: Stop")
	w.eventually(func() error {
		return want(true, apimeta.IsStatusConditionTrue(w.status("staged").Conditions, "Ready"))
	})
	w.keepsHash("app1", before)
}

// A release for one workload has failed also once that has its previous config back, and is
// complete with the next one.
func TestALoneWorkloadReturns(t *testing.T) {
	w := newWorld(t)
	pinnable(w)
	w.options.CoalesceWindow = 0
	w.policy("staged", pinsAndReturns)
	plainly(w, "app1")
	w.manage()
	first := w.pinnedAgain("Deployment", "app1", "")
	w.ready("app1")
	w.secret("db", "p", "bad")
	w.eventually(func() error {
		return errors.Join(want(rolledBack, string(w.explain("app1").Reason)), want(first, w.pinsOf("Deployment", "app1")))
	})
	w.readyWith("app1", snapshotOf(t, first), 1)
	w.phase("staged", "Failed")
	w.keepsHash("app1", w.hash("app1"))
	w.phase("staged", "Failed")
	w.secret("db", "p", "good2")
	w.ready("app1")
	w.phase("staged", "Complete")
}

// Who removes pinConfig from a policy rolls nothing. The pins stay until the next change.
func TestAPolicyThatPinsNoMore(t *testing.T) {
	w := newWorld(t)
	pinnable(w)
	w.policy("staged", "pinConfig: true")
	plainly(w, "app1")
	w.manage()
	first := w.pinnedAgain("Deployment", "app1", "")
	w.readyWith("app1", snapshotOf(t, first), 1)
	w.policy("staged", "pinConfig: false")
	w.eventually(func() error { return want(int64(2), w.status("staged").ObservedGeneration) })
	w.rests(func() {})
	if pins := w.pinsOf("Deployment", "app1"); pins != first {
		t.Errorf("the pins are %s, and were %s", pins, first)
	}
	w.secret("db", "p", "good2")
	w.eventually(func() error { return want("", w.pinsOf("Deployment", "app1")) })
}

// aReturn is a world in which a bad value is to be stopped at the first of three workloads, and
// this one to get its previous config back.
func aReturn(t *testing.T) (w *world, k *kubelets, first string) {
	t.Helper()
	w = newWorld(t)
	pinnable(w)
	w.options.CoalesceWindow = 0
	w.policy("staged", pinsAndReturns)
	k = plainly(w, "app1", "app2", "app3")
	w.manage()
	first = w.pinnedAgain("Deployment", "app1", "")
	w.ready("app1", "app2", "app3")
	w.phase("staged", "Complete")
	w.halt()
	w.secret("db", "p", "bad")
	return w, k, first
}

// returned waits until the story has come to its end: one workload ran the bad value, and all
// have what they had.
func (w *world) returned(k *kubelets, first string, meanwhile func()) {
	w.t.Helper()
	w.eventually(func() error {
		meanwhile()
		e := w.explain("app1")
		return errors.Join(want(rolledBack, string(e.Reason)), want(first, w.pinsOf("Deployment", "app1")))
	})
	w.readyWith("app1", snapshotOf(w.t, first), 1)
	w.phase("staged", "Failed")
	if ran := k.ranWith("bad"); !slices.Equal(ran, []string{"app1"}) {
		w.t.Errorf("%v ran the bad value", ran)
	}
	for _, name := range []string{"app2", "app3"} {
		if pins := w.pinsOf("Deployment", name); pins != first {
			w.t.Errorf("%s has the pins %s, want %s", name, pins, first)
		}
	}
}

// TestFaultAPolicyReturnsTwoManagers has two managers that know nothing of each other.
func TestFaultAPolicyReturnsTwoManagers(t *testing.T) {
	w, k, first := aReturn(t)
	w.managedBy(fault.New())
	w.managedBy(fault.New())
	w.returned(k, first, func() {})
}
