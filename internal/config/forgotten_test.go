package config_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

// takings are how a tool takes away what the manager has written on a Deployment while it rolls.
func takings() map[string]func(w *world) {
	return map[string]func(w *world){
		"replace": func(w *world) { w.replaced("app1", created(w.deploymentNow("app1"))) },
		"the hash stays": func(w *world) {
			w.annotate("app1", native+"config-change", "-", native+"config-status", "-", native+"config-answered", "-")
		},
		"a new manager after replace": func(w *world) {
			w.halt()
			w.replaced("app1", created(w.deploymentNow("app1")))
			w.manage()
		},
		"a new manager, and the hash stays": func(w *world) {
			w.halt()
			w.annotate("app1", native+"config-change", "-")
			w.manage()
		},
	}
}

// sickWorld has a Deployment that crashes whatever its config, and one that is not rolled before a user says so.
func sickWorld(t *testing.T) (*world, *kubelets) {
	t.Helper()
	w := newWorld(t)
	k := startKubelets(w)
	k.breaks("app1")
	w.secret("db", "p", "good")
	for _, name := range []string{"app1", "app2"} {
		w.apply(still(deployment(name, envFrom(secretRef("db")))))
	}
	w.manage()
	w.crashesWith("app1", w.hashed("app1", ""))
	w.ready("app2")
	w.annotate("app2", native+"pause", "true")
	w.settled() // the manager has seen it
	return w, k
}

// crashesWith waits until a Pod crashes that has a hash.
func (w *world) crashesWith(name, hash string) {
	w.t.Helper()
	w.eventually(func() error { return want(true, w.crashes(name, hash)) })
}

// notReadyBefore are the Deployments that were not ready before they were rolled for the Secret db, as is recorded.
func (w *world) notReadyBefore() (names []string) {
	w.t.Helper()
	r := w.record("Secret", "db")
	if r == nil || r.Before == nil {
		return nil
	}
	if r.Before.Digest != w.digest("db") {
		w.t.Errorf("how workloads were is recorded for %s, the content is %s", r.Before.Digest, w.digest("db"))
	}
	for _, is := range r.Before.NotReady {
		names = append(names, is.Name)
	}
	return names
}

// A workload crashed before its config changes, and crashes as before. That it did is known whatever tools take away
// from it: the content is not given up for that.
func TestWhatWasSickIsNotForgotten(t *testing.T) {
	for name, take := range takings() {
		t.Run(name, func(t *testing.T) {
			w, _ := sickWorld(t)
			before := w.hash("app2")
			w.secret("db", "p", "fine")
			w.crashesWith("app1", w.hashed("app1", before))
			w.settled()
			if names := w.notReadyBefore(); !slices.Equal(names, []string{"app1"}) {
				t.Errorf("it is recorded of %v that they were not ready", names)
			}
			take(w)
			w.settled()
			w.crashesWith("app1", w.hash("app1"))
			w.annotate("app2", native+"pause", "-")
			w.hashed("app2", before)
			w.ready("app2")
			if f := w.failedWith("Secret", "db"); len(f) > 0 {
				t.Errorf("the record says that %v failed", f)
			}
			w.rests(func() {})
		})
	}
}

// A workload that was ready before fails, though a tool has taken away what was recorded on it: others do not get the
// content.
func TestWhatWasReadyIsNotForgotten(t *testing.T) {
	for name, take := range takings() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			k := shared(w, "app1", "app2")
			before := w.hash("app1")
			w.annotate("app2", native+"pause", "true")
			w.settled() // the manager has seen it
			w.secret("db", "p", "late")
			w.hashed("app1", before)
			w.ready("app1")
			w.settled()
			if names := w.notReadyBefore(); len(names) > 0 {
				t.Errorf("it is recorded of %v that they were not ready", names)
			}
			take(w)
			w.settled()
			w.ready("app1")
			k.crash(w.pods("app1")[0])
			w.eventually(func() error { return want("Failed", string(w.explain("app1").State)) })
			w.annotate("app2", native+"pause", "-")
			w.stopped("app1", "app2")
			w.rests(func() {})
		})
	}
}

// What is recorded of one content says nothing of the next: a workload that has become ready meanwhile fails with it.
func TestHowItWasBeforeAnEarlierContentDoesNotCount(t *testing.T) {
	w, k := sickWorld(t)
	before := w.hash("app1")
	w.secret("db", "p", "fine")
	sick := w.hashed("app1", before)
	w.crashesWith("app1", sick)
	w.settled()
	k.breaks("")
	w.secret("db", "p", "late")
	w.hashed("app1", sick)
	w.ready("app1")
	w.settled()
	w.secret("db", "p", "next")
	w.ready("app1")
	w.settled()
	if names := w.notReadyBefore(); len(names) > 0 {
		t.Errorf("it is recorded of %v that they were not ready", names)
	}
	w.replaced("app1", created(w.deploymentNow("app1")))
	w.settled()
	w.ready("app1")
	k.crash(w.pods("app1")[0])
	w.eventually(func() error { return want("Failed", string(w.explain("app1").State)) })
	w.annotate("app2", native+"pause", "-")
	w.stopped("app1", "app2")
}

// Without the record of how a workload is before, it is not rolled, and the others are.
func TestWhatIsSickIsNotRolledWithoutARecord(t *testing.T) {
	w, _ := sickWorld(t)
	before := w.hash("app1")
	w.annotate("app2", native+"pause", "-")
	permit := w.refuseRecords()
	w.secret("db", "p", "fine")
	w.hashed("app2", before)
	w.ready("app2")
	w.settled()
	if w.hash("app1") != before {
		t.Error("app1 was rolled, and nothing says that it was not ready before")
	}
	permit()
	w.hashed("app1", before)
}

// The manager is stopped at each of its writes, and another one starts: a workload that is not ready is
// never rolled before that is recorded.
func TestFaultHowItWasIsRecordedFirst(t *testing.T) {
	testenv.Story(t, 6, func(t *testing.T, begin fault.Begin) {
		w := newWorld(t)
		w.options.CoalesceWindow = 0
		startKubelets(w).breaks("app1")
		w.secret("db", "p", "good")
		w.apply(still(deployment("app1", envFrom(secretRef("db")))))
		w.meanwhile = begin(w.managedBy)
		before := w.hashed("app1", "")
		w.crashesWith("app1", before)
		w.eventually(func() error { return want("1", fmt.Sprint(w.deploymentNow("app1").Status.UpdatedReplicas)) })
		w.secret("db", "p", "fine")
		w.eventually(func() error {
			rolled := w.hash("app1") != before
			switch r := w.record("Secret", "db"); {
			case rolled && (r == nil || r.Before == nil || len(r.Before.NotReady) != 1):
				t.Fatalf("it is rolled, and the record is %+v", r)
			case !rolled:
				return errors.New("it is not rolled")
			}
			return nil
		})
		w.crashesWith("app1", w.hash("app1"))
		w.annotate("app1", native+"config-change", "-")
		w.eventually(func() error {
			if w.deploymentNow("app1").Annotations[native+"config-change"] == "" {
				return errors.New("it does not know how it was")
			}
			return nil
		})
		if f := w.failedWith("Secret", "db"); len(f) > 0 {
			t.Errorf("the record says that %v failed", f)
		}
	})
}
