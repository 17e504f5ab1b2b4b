package config_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	onFailure   = native + "on-config-failure"
	rolledBack  = "ConfigRolledBack"
	backMessage = " failed (1 of %d Pods CrashLoopBackOff); the previous config was restored (changed: Secret db: p)"
)

// returns is a workload that keeps its config, and gets it back if a change fails.
func returns(kind, name string, annotations ...string) string {
	return still(workload(kind, name, envFrom(secretRef("db")), append([]string{native + "pin-config", "true"}, annotations...)...))
}

// isBack waits until a workload has its pins back, and says why.
func (w *world) isBack(kind, name, pins string) {
	w.t.Helper()
	w.eventually(func() error {
		e := w.explainKind(kind, name)
		return errors.Join(want(pins, w.pinsOf(kind, name)), want(rolledBack, string(e.Reason)))
	})
}

// A workload that fails with a change gets its previous config back, and keeps it until the
// object changes or a user asks to try again. Others are not rolled for what has failed.
func TestAFailedChangeIsRolledBack(t *testing.T) {
	w := newWorld(t)
	pinnable(w)
	k := startKubelets(w)
	w.secret("db", "p", "good")
	w.apply(returns("Deployment", "app", onFailure, "Rollback"), returns("Deployment", "late"))
	w.manage()
	first := w.pinnedAnew("Deployment", "app", "")
	late := w.pinnedAnew("Deployment", "late", "")
	good := snapshotOf(t, first)
	w.readyWith("app", good, 1)
	w.readyWith("late", good, 1)
	w.annotate("late", native+"pause", "true")
	w.sentinel() // the manager has seen it
	revisions := w.replicaSets("app")

	w.secret("db", "p", "bad")
	w.isBack("Deployment", "app", first)
	w.readyWith("app", good, 1)
	w.annotate("late", native+"pause", "-")
	w.stopped("app", "late")
	w.sentinelOnly(func() {
		if err := errors.Join(want(first, w.pinsOf("Deployment", "app")), want(late, w.pinsOf("Deployment", "late")), want(revisions+1, w.replicaSets("app"))); err != nil {
			t.Error(err)
		}
	})
	said := fmt.Sprintf(backMessage, 2)
	if c := w.condition("app"); !strings.Contains(c, said) {
		t.Errorf("the condition is %s", c)
	}
	w.eventually(func() error { return want(1, len(w.events(rolledBack))) })
	if e := w.explain("app"); !strings.Contains(e.Sentence, said) {
		t.Errorf("explain says %s", e.Sentence)
	}

	if ran := k.ranWith("bad"); fmt.Sprint(ran) != "[app]" {
		t.Errorf("%v ran the bad value", ran)
	}

	w.retry("db", time.Now().Add(time.Second)) // it fails again, and goes back again
	w.eventually(func() error { return want(2, len(w.events(rolledBack))) })
	w.isBack("Deployment", "app", first)
	w.readyWith("app", good, 1)

	w.secret("db", "p", "good2")
	w.readyWith("app", snapshotOf(t, w.pinnedAnew("Deployment", "app", first)), 1)
	w.eventually(func() error { return want("", w.condition("app")) })
	w.ready("app")
}

// The object can ask for it too; a workload can refuse. A StatefulSet whose Pod is stuck needs
// a user to delete it, as for every undo.
func TestTheObjectAsksForTheReturn(t *testing.T) {
	w := newWorld(t)
	pinnable(w)
	startKubelets(w)
	w.secret("db", "p", "good")
	w.patch(&corev1.Secret{}, "db", `{"metadata":{"annotations":{"`+onFailure+`":"Rollback"}}}`)
	w.apply(returns("StatefulSet", "set"), returns("DaemonSet", "node"), returns("Deployment", "keeps", onFailure, "Stop"), returns("Deployment", "odd", onFailure, "Undo"))
	w.manage()
	first := map[string]string{}
	for name, kind := range map[string]string{"set": "StatefulSet", "node": "DaemonSet", "keeps": "Deployment", "odd": "Deployment"} {
		first[name] = w.pinnedAnew(kind, name, "")
		pods := 1
		if kind == "DaemonSet" {
			pods = 3
		}
		w.readyWith(name, snapshotOf(t, first[name]), pods)
	}
	w.saysEventually("odd", `must be \"Rollback\" or \"Stop\"; using \"Stop\"`)
	w.patch(&corev1.Secret{}, "db", `{"stringData":{"p":"bad"}}`)
	w.readyWith("node", snapshotOf(t, first["node"]), 3)
	w.isBack("DaemonSet", "node", first["node"])
	w.eventually(func() error { return want(2, len(w.events(rolledBack))) })
	w.remove(&corev1.Pod{}, "set-0")
	w.readyWith("set", snapshotOf(t, first["set"]), 1)
	w.isBack("StatefulSet", "set", first["set"])
	w.eventually(func() error {
		return errors.Join(want("Failed", string(w.explain("keeps").State)), want("Failed", string(w.explain("odd").State)))
	})
	w.sentinelOnly(func() {
		if w.pinsOf("Deployment", "keeps") == first["keeps"] || w.pinsOf("Deployment", "odd") == first["odd"] {
			t.Error("a workload went back that did not ask for it")
		}
	})
}

// Where there is nothing to go back to, or not everything of it exists, the workload says so.
func TestNothingToGoBackTo(t *testing.T) {
	w := newWorld(t)
	pinnable(w)
	startKubelets(w)
	w.secret("db", "p", "good")
	w.apply(returns("Deployment", "lost", onFailure, "Rollback"), still(deployment("unpinned", envFrom(secretRef("db")), onFailure, "Rollback")))
	w.manage()
	w.hashed("unpinned", "")
	first := w.pinnedAnew("Deployment", "lost", "")
	good := snapshotOf(t, first)
	w.readyWith("lost", good, 1)
	w.readyWith("unpinned", "db", 1)
	w.halt()
	w.secret("db", "p", "bad")
	w.remove(&corev1.Secret{}, good)
	w.manage()
	w.saysEventually("lost", "the previous config cannot be restored: Secret "+good+" not found")
	w.saysEventually("unpinned", "the previous config cannot be restored: it does not keep the config of its revisions (spillway.dev/pin-config)")
	w.sentinelOnly(func() {})
}
