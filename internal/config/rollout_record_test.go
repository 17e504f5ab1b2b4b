package config_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/manager"
)

// A record says how a content went: the workload that failed, and as one cause all that wait for it. The next
// content is another rollout, and the first one is its history. Then nothing is written any more.
func TestTheRecordOfARollout(t *testing.T) {
	w := newWorld(t)
	w.options.MaxRolling = 1
	shared(w, five...)
	w.settled()
	if r := w.record("Secret", "db"); r != nil {
		t.Fatalf("a first hash is recorded: %+v", r)
	}

	w.secret("db", "p", "bad")
	w.stopped("app1", five[1:]...)
	w.settled()
	r := w.record("Secret", "db").Rollout
	if r == nil || r.Phase != "Failed" || r.Units != (v1alpha1.RolloutCounts{Total: 5, Waiting: 4, Failed: 1}) || r.FinishedAt != nil || len(r.Changed) != 1 || r.Changed[0] != "Secret db: p" {
		t.Fatalf("the record is %+v", r)
	}
	if len(r.Causes) != 2 || r.Causes[0].State != "Failed" || r.Causes[0].Units[0] != "Deployment app1" || r.Causes[1].Count != 4 || len(r.Causes[1].Units) != 4 ||
		r.Causes[1].About.Name != "db" || r.Causes[1].On.Name != "app1" || !strings.Contains(r.Causes[1].Why, "failed on deployment/app1") {
		t.Errorf("the causes are %+v", r.Causes)
	}
	w.rests(func() {})

	w.secret("db", "p", "good2")
	w.ready(five...)
	w.settled()
	is := w.record("Secret", "db")
	if r := is.Rollout; r.Phase != "Complete" || r.FinishedAt == nil || r.Units != (v1alpha1.RolloutCounts{Total: 5, Complete: 5}) || len(r.Causes) != 0 {
		t.Errorf("the record is %+v", r)
	}
	secret := &corev1.Secret{}
	if err := w.get(secret, "db"); err != nil {
		t.Fatal(err)
	}
	_, writer := kube.LastWrite(secret, "data") // empty where it was created in the same second
	if len(is.History) != 1 || is.History[0].Outcome != "Failed" || !strings.Contains(is.History[0].Message, "CrashLoopBackOff") || is.History[0].UndoneBy != writer || is.Rollout.ChangedBy != writer {
		t.Errorf("the record is %+v, the history %+v", is.Rollout, is.History)
	}
	w.rests(func() {})
}

// What waits for an object that does not exist, or that is paused, is recorded with it.
func TestTheRecordOfAWait(t *testing.T) {
	w := newWorld(t)
	w.configMap("app", "a", "1")
	w.apply(deployment("web", envFrom(configMapRef("app"))))
	w.apply(deployment("lacks", envFrom(secretRef("db"))))
	w.manage()
	w.hashed("web", "")
	w.saysEventually("lacks", "Secret db not found")
	w.settled()
	if c := w.record("Secret", "db").Rollout.Causes; len(c) != 1 || c[0].Reason != "ConfigMissing" || c[0].About.Name != "db" || c[0].Units[0] != "Deployment lacks" {
		t.Errorf("the causes are %+v", c)
	}
	w.patch(&corev1.ConfigMap{}, "app", `{"metadata":{"annotations":{"spillway.dev/pause":"true"}}}`)
	w.configMap("app", "a", "2")
	w.eventually(func() error {
		r := w.record("ConfigMap", "app")
		return want(true, r != nil && r.Paused != nil && r.Rollout != nil && r.Rollout.Phase == "Paused" && r.Rollout.Units.Waiting == 1)
	})
}

// Who may not read Secrets gets what the manager has decided, and no state of another ring's rights.
func TestAViewerIsToldWhatIsRecorded(t *testing.T) {
	w := newWorld(t)
	w.options.MaxRolling = 1
	shared(w, five...)
	viewer := w.viewer()
	states := func() map[string]config.Explanation {
		_, of := w.survey(viewer)
		return of
	}
	w.settled()
	for name, e := range states() {
		if e.State != config.StateUpToDate || e.Unseen == "" || strings.Contains(e.Sentence, "grant") {
			t.Errorf("%s is %s: %s (%s)", name, e.State, e.Sentence, e.Unseen)
		}
	}
	w.secret("db", "p", "bad")
	w.stopped("app1", five[1:]...)
	w.settled()
	seen := states()
	if e := seen["app1"]; e.State != config.StateFailed || e.Sentence != w.explain("app1").Sentence {
		t.Errorf("app1 is %s: %s", e.State, e.Sentence)
	}
	if e, is := seen["app2"], w.explain("app2"); e.State != config.StateWaiting || e.Reason != "ConfigFailed" || e.Sentence != is.Sentence || *e.FailedOn != *is.FailedOn || *e.FailedWith != *is.FailedWith {
		t.Errorf("app2 is %+v, want %+v", e, is)
	}
}

// A record names the manager that has decided it. The next one writes nothing for that.
func TestTheRecordSaysWhoDecided(t *testing.T) {
	w := newWorld(t)
	first := func(o *manager.Options) { o.Identity = "spillway-1" }
	shared(w, "app1")
	w.halt()
	w.manage(first)
	w.secret("db", "p", "good2")
	w.eventually(func() error { return want("Complete", w.recordedPhase("Secret", "db")) })
	if by := w.record("Secret", "db").Rollout.DecidedBy; by != "spillway-1" {
		t.Errorf("decided by %q", by)
	}
	w.halt()
	w.silent(func() { w.manage(func(o *manager.Options) { o.Identity = "spillway-2" }) })
	w.rests(func() {
		if by := w.record("Secret", "db").Rollout.DecidedBy; by != "spillway-1" {
			t.Errorf("decided by %q", by)
		}
	})
	w.secret("db", "p", "bad")
	w.eventually(func() error { return want("Failed", w.recordedPhase("Secret", "db")) })
	if e := w.explain("app1"); e.DecidedBy != "spillway-2" || e.DecidedAt == nil {
		t.Errorf("app1 is explained as decided by %q at %v", e.DecidedBy, e.DecidedAt)
	}
}

// recordedPhase is that which is recorded of an object, empty if nothing is.
func (w *world) recordedPhase(kind content.Kind, name string) string {
	w.t.Helper()
	if r := w.record(kind, name); r != nil && r.Rollout != nil {
		return r.Rollout.Phase
	}
	return ""
}
