package hub_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

// The story of the fault tests: a module comes to three clusters, one of which is the
// canary, and then rolls; a cluster is not wanted any more; and the module goes.
// Whatever goes wrong meanwhile, never is more than one cluster down, and the end is
// the same.
const story = `strategy: Incremental, selector: {matchExpressions: [{key: retired, operator: DoesNotExist}]}, rollout: {progressDeadlineSeconds: 3600,
	stages: [{name: canary, selector: {matchLabels: {canary: "true"}}, gates: [{name: approve}]}, {name: rest}]}`

func (w *world) beginStory() {
	w.t.Helper()
	w.clusters("a canary=true", "b", "c")
	w.module("v1", story)
}

// tell tells the story to its end; meanwhile is called all along.
func (w *world) tell(meanwhile func()) {
	w.t.Helper()
	w.beginStory()
	w.arrives("a:v1 b:v1 c:v1", meanwhile)
	w.module("v2", story)
	w.arrives("a:v2 b:v2 c:v2", meanwhile)
	w.endStory(meanwhile)
}

// endStory tells the rest: a cluster is not wanted any more, and the module goes.
func (w *world) endStory(meanwhile func()) {
	w.t.Helper()
	w.patch(&corev1.Secret{}, "c-kubeconfig", `{"metadata":{"labels":{"retired":"true"}}}`)
	w.arrives("a:v2 b:v2", meanwhile)
	w.remove(&v1alpha1.Module{}, app)
	w.eventually(func() error {
		meanwhile()
		if got := w.runs(); got != "" {
			return fmt.Errorf("they still run %s", got)
		}
		return w.isGone(&v1alpha1.Module{}, app)
	})
	w.player.atMost(1)
	if told := w.player.told("v2"); !strings.HasPrefix(told, "a ") {
		w.t.Errorf("the order was %s", told)
	}
}

// arrives waits for completion while something goes on meanwhile, and while a user
// approves.
func (w *world) arrives(want string, meanwhile func()) {
	w.t.Helper()
	w.eventually(func() error {
		meanwhile()
		w.approve()
		if got := w.runs(); got != want {
			return fmt.Errorf("they run %q, want %q: %s", got, want, w.says())
		}
		if s := w.status(); s.Phase != "Complete" || len(s.Moves) > 0 || s.CurrentRevision != s.TargetRevision || s.Forecast != nil {
			return fmt.Errorf("%s", w.says())
		}
		return nil
	})
}

func noFault() {}

// TestFaultTheManagerStopsAtEveryWrite tells the story with hubs each of which stops at the first
// write that it can. What the status says of the end of the second rollout follows from what was
// written, and goes with it.
func TestFaultTheManagerStopsAtEveryWrite(t *testing.T) {
	testenv.AtEveryWrite(t, 20, func(t *testing.T, begin fault.Begin) {
		w := newWorld(t)
		w.beginStory()
		next := begin(func(i *fault.Injector) func() { return w.managed(i) })
		w.arrives("a:v1 b:v1 c:v1", next)
		if s := w.status(); s.Forecast != nil || len(s.History) != 1 {
			t.Errorf("after the first rollout: %+v", s)
		}
		w.module("v2", story)
		w.eventually(func() error { // the gate waits meanwhile
			next()
			f := w.status().Forecast
			if f == nil || f.Decides != "rest" || f.Latest.Before(&f.Expected) || f.Expected.Before(&f.Earliest) {
				return fmt.Errorf("foreseen is %+v: %s", f, w.says())
			}
			return nil
		})
		w.arrives("a:v2 b:v2 c:v2", next)
		for i, past := range w.status().History {
			if len(past.Stages) != 2 || past.Stages[0].Name != "canary" || past.Stages[1].FinishedAt.After(past.FinishedAt.Time) {
				t.Errorf("rollout %d went through %+v", i, past.Stages)
			}
		}
		w.endStory(next)
	})
}

// TestFaultTwoHubsParallel has two managers that know nothing of each other.
func TestFaultTwoHubsParallel(t *testing.T) {
	for i := range 3 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			w := newWorld(t)
			w.managed(fault.New())
			w.managed(fault.New())
			w.tell(noFault)
		})
	}
}

// TestFaultTwoHubsOneBehind has two managers, of which one sees nothing for a part of
// the story, and acts all the same.
func TestFaultTwoHubsOneBehind(t *testing.T) {
	w := newWorld(t)
	lagging := fault.New()
	w.managed(lagging)
	w.beginStory()
	w.arrives("a:v1 b:v1 c:v1", noFault)
	w.managed(fault.New())
	release := lagging.HoldWatches()
	w.disturbed = true
	w.module("v2", story)
	w.happens("a:v2")
	release()
	w.arrives("a:v2 b:v2 c:v2", noFault)
	w.player.atMost(1)
}

// TestFaultARemovalFromAnOldView has a hub that sees the assemblages, and does not see that
// a cluster is selected again: by the module, or by its labels.
func TestFaultARemovalFromAnOldView(t *testing.T) {
	const prod, dev = `selector: {matchLabels: {env: prod}}`, `selector: {matchLabels: {env: dev}}`
	relabel := func(w *world, env string) {
		w.patch(&corev1.Secret{}, "a-kubeconfig", fmt.Sprintf(`{"metadata":{"labels":{"env":%q}}}`, env))
	}
	for unseen, test := range map[string]struct{ deselect, reselect func(*world) }{
		"modules": {func(w *world) { w.module("v1", dev) }, func(w *world) { w.module("v1", prod) }},
		"secrets": {func(w *world) { relabel(w, "dev") }, func(w *world) { relabel(w, "prod") }},
	} {
		t.Run(unseen, func(t *testing.T) {
			w := newWorld(t)
			w.manage()
			w.clusters("a env=prod")
			w.module("v1", prod)
			w.complete("a:v1")
			refused := make(chan struct{}, 100)
			w.requests.Conflict(func(r fault.Request) bool {
				if r.Resource == "proxyassemblages" {
					refused <- struct{}{}
				}
				return r.Resource == "proxyassemblages"
			})
			test.deselect(w)
			<-refused // it is about to remove it
			release := w.requests.HoldWatches(unseen)
			test.reselect(w)
			w.asksBeforeItRemoves() // a pass that asked before the change has ended
			w.requests.Conflict(nil)
			w.asksBeforeItRemoves()
			release()
			w.barrier.Step(t, time.Hour) // by then what was permitted is not made any more
			w.complete("a:v1")
			if told := w.player.told("v1"); told != "a" {
				t.Errorf("v1 was taken away and assigned again: %s", told)
			}
		})
	}
}

// TestFaultARevisionIsNotDeletedFromAnOldView has a hub that sees the revisions, and does not
// see what the module says now: the newest revision is one that it knows no use for.
func TestFaultARevisionIsNotDeletedFromAnOldView(t *testing.T) {
	const thrifty = everywhere + `, revisionHistoryLimit: 0`
	w, old := newWorld(t), fault.New()
	w.managed(old)
	w.clusters("a")
	w.module("v1", thrifty)
	w.complete("a:v1")
	release := old.HoldWatches("modules")
	defer release()
	w.disturbed = true
	old.Reset()
	w.manage()
	w.module("v2", thrifty)
	w.eventually(func() error {
		for _, r := range old.Requests() {
			if r.Verb == "list" && r.Resource == "modules" || r.Verb == "delete" && r.Resource == "modulerevisions" {
				return nil
			}
		}
		return errors.New("it has not tried to delete the new revision")
	})
	w.complete("a:v2")
	for _, r := range old.Writes() {
		if r.Verb == "delete" && r.Resource == "modulerevisions" {
			t.Errorf("revision %s is deleted", r.Name)
		}
	}
}

// asksBeforeItRemoves waits until the hub reads the module live, or permits the removal
// again by the module's resourceVersion.
func (w *world) asksBeforeItRemoves() {
	w.t.Helper()
	w.requests.Reset()
	w.eventually(func() error {
		for _, r := range w.requests.Requests() {
			if r.Resource == "modules" && (r.Verb == "list" || r.Verb == "update") {
				return nil
			}
		}
		return errors.New("it does not ask before it removes something")
	})
}

// TestFaultConflicts refuses every other write.
func TestFaultConflicts(t *testing.T) {
	w, n, inj := newWorld(t), 0, fault.New()
	inj.Conflict(func(fault.Request) bool { n++; return n%2 == 1 })
	w.managed(inj)
	w.tell(noFault)
}

// TestFaultTheConnectionIsCut cuts the connection in the middle.
func TestFaultTheConnectionIsCut(t *testing.T) {
	w, inj := newWorld(t), fault.New()
	w.managed(inj)
	w.beginStory()
	w.arrives("a:v1 b:v1 c:v1", noFault)
	w.module("v2", story)
	w.happens("a:v2")
	inj.Cut()
	w.module("v3", story)
	inj.Restore()
	w.arrives("a:v3 b:v3 c:v3", noFault)
	w.player.atMost(1)
}

// approve decides all gates that there are.
func (w *world) approve() {
	w.t.Helper()
	for _, g := range w.gates() {
		if len(g.Status.Conditions) == 0 {
			g.Status.Conditions = []metav1.Condition{{
				Type: "Passed", Status: metav1.ConditionTrue, Reason: "Decided", LastTransitionTime: metav1.Now(),
			}}
			if err := w.client.Status().Update(w.t.Context(), &g); err != nil && !isConflict(err) {
				w.t.Log(err)
			}
		}
	}
}
