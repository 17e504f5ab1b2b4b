package config_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	state "github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain"
	"github.com/spillway-dev/spillway/internal/kube"
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
	first := w.pinnedAgain("Deployment", "app", "")
	late := w.pinnedAgain("Deployment", "late", "")
	good := snapshotOf(t, first)
	w.readyWith("app", good, 1)
	w.readyWith("late", good, 1)
	w.annotate("late", native+"pause", "true")
	w.settled() // the manager has seen it
	revisions := w.replicaSets("app")

	w.secret("db", "p", "bad")
	w.isBack("Deployment", "app", first)
	w.readyWith("app", good, 1)
	w.annotate("late", native+"pause", "-")
	w.stopped("app", "late")
	w.rests(func() {
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
	for _, name := range []string{"app", "late"} {
		w.next(name, "kubectl edit secret/db -n "+w.namespace)
	}

	w.retry("db", time.Now().Add(time.Second)) // it fails again, and goes back again
	w.eventually(func() error { return want(2, len(w.events(rolledBack))) })
	w.isBack("Deployment", "app", first)
	w.readyWith("app", good, 1)

	w.secret("db", "p", "good2")
	w.readyWith("app", snapshotOf(t, w.pinnedAgain("Deployment", "app", first)), 1)
	w.eventually(func() error { return want("", w.condition("app")) })
	w.ready("app")
	w.settled()
	if past := w.record("Secret", "db").History; len(past) != 1 || past[0].UndoneBy != kube.FieldOwner {
		t.Errorf("the history is %+v", past)
	}
}

// next is an error unless spillway explain of a Deployment ends with a command.
func (w *world) next(name, command string) {
	w.t.Helper()
	c, err := explain.Explain(w.t.Context(), explain.World{Client: w.client, Options: w.options}, state.Ref{Kind: "Deployment", Namespace: w.namespace, Name: name})
	if err != nil {
		w.t.Fatal(err)
	}
	if got := c.Root().Next; got != command {
		w.t.Errorf("explain %s ends with %s: %q; its next command is %q, not %q", name, c.Root(), c.Root().Sentence, got, command)
	}
}

// The object can ask for it too; a workload can refuse. The Pod of a StatefulSet that is stuck at
// what has failed is replaced.
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
		first[name] = w.pinnedAgain(kind, name, "")
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
	w.readyWith("set", snapshotOf(t, first["set"]), 1)
	w.isBack("StatefulSet", "set", first["set"])
	w.eventually(func() error {
		return errors.Join(want("Failed", string(w.explain("keeps").State)), want("Failed", string(w.explain("odd").State)))
	})
	w.rests(func() {
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
	first := w.pinnedAgain("Deployment", "lost", "")
	good := snapshotOf(t, first)
	w.readyWith("lost", good, 1)
	w.readyWith("unpinned", "db", 1)
	w.halt()
	w.secret("db", "p", "bad")
	w.remove(&corev1.Secret{}, good)
	w.manage()
	w.saysEventually("lost", "the previous config cannot be restored: Secret "+good+" not found")
	w.saysEventually("unpinned", "the previous config cannot be restored: it does not keep the config of its revisions (spillway.dev/pin-config)")
	w.rests(func() {})
}

// In a group of zones the first zone alone runs the bad value, and gets its previous pins back.
// No Pod of the other zones is replaced for it.
func TestAGroupReturnsInItsFirstZone(t *testing.T) {
	s := newStory(newWorld(t), cast{deployments: 1, groups: 1, zones: 3}, "ring0", true)
	s.managed(s.inj)
	pods := func() (of []string) {
		for _, zone := range []string{"ring0-b", "ring0-c"} {
			for _, p := range s.live(zone) {
				of = append(of, zone+" "+string(p.UID)+" "+p.Spec.Containers[0].EnvFrom[0].SecretRef.Name)
			}
		}
		return of
	}
	before, pins := pods(), s.pinsOf("StatefulSet", "ring0-a")
	s.goesBad()
	if now := pods(); len(now) != 2 || !slices.Equal(now, before) {
		t.Errorf("the Pods of the other zones are %v, and were %v", now, before)
	}
	if ran := s.kubelets.ranWith("bad"); !slices.Equal(ran, []string{"ring0-a"}) {
		t.Errorf("%v ran the bad value", ran)
	}
	s.readyWith("ring0-a", snapshotOf(t, pins), 1)
	for _, zone := range []string{"ring0-a", "ring0-b", "ring0-c"} {
		if err := want(pins, s.pinsOf("StatefulSet", zone)); err != nil {
			t.Errorf("%s: %v", zone, err)
		}
	}
	s.goesWell("good2")
}
