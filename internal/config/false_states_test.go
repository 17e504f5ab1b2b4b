package config_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// viewer is a user who may read all but Secrets.
func (w *world) viewer() client.Client {
	w.t.Helper()
	user := "viewer-of-" + w.namespace
	w.grant(user, []rbacv1.PolicyRule{
		{APIGroups: []string{"", "apps"}, Resources: []string{"configmaps", "pods", "deployments", "statefulsets", "daemonsets", "replicasets"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"spillway.dev"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
	})
	return clientFor(w.t, testenv.Shared().ConfigAs(user))
}

// survey is what a reader sees of all workloads, by their names.
func (w *world) survey(reader client.Client) (config.Overview, map[string]config.Explanation) {
	w.t.Helper()
	all, err := config.Survey(w.t.Context(), reader, w.options, w.namespace)
	if err != nil {
		w.t.Fatal(err)
	}
	of := map[string]config.Explanation{}
	for _, e := range all.Workloads {
		of[e.Name] = e
	}
	return all, of
}

// usesBoth are Deployments that share ConfigMap app and Secret db, and are ready with them.
func usesBoth(w *world, names ...string) *kubelets {
	w.t.Helper()
	k := startKubelets(w)
	w.configMap("app", "a", "1")
	w.secret("db", "p", "good")
	for _, name := range names {
		w.apply(still(deployment(name, envFrom(configMapRef("app"), secretRef("db")))))
	}
	w.manage()
	w.ready(names...)
	w.settled()
	return k
}

// What changed while no manager runs is not up to date for any reader, whatever that one may read; and it is not said
// to be next. The rest is as it was.
func TestWhatNoManagerHasSeenIsNotUpToDate(t *testing.T) {
	w := newWorld(t)
	usesBoth(w, "app1", "app2")
	w.configMap("other", "a", "1")
	w.apply(deployment("other", envFrom(configMapRef("other"))))
	w.hashed("other", "")
	w.halt()
	w.configMap("app", "a", "2")
	w.apply(deployment("new", envFrom(configMapRef("app"))))
	app, db := content.Object{Kind: content.ConfigMap, Namespace: w.namespace, Name: "app"}, content.Object{Kind: content.Secret, Namespace: w.namespace, Name: "db"}
	for name, reader := range map[string]client.Client{"a user": w.client, "a viewer": w.viewer()} {
		all, of := w.survey(reader)
		for _, app := range []string{"app1", "app2", "new"} {
			if e := of[app]; e.State != config.StateNotObserved || e.Reason != "NotObserved" || !strings.HasPrefix(e.Sentence, "Deployment "+app+" is waiting: the manager has not ") {
				t.Errorf("for %s %s is %s: %s", name, app, e.State, e.Sentence)
			}
		}
		if e := of["app1"]; !slices.Equal(e.Behind, []content.Object{app}) {
			t.Errorf("for %s app1 is behind %v", name, e.Behind)
		}
		if e := of["other"]; e.State != config.StateUpToDate && e.State != config.StateRolling { // its Pod may not be ready yet
			t.Errorf("for %s the other is %s: %s", name, e.State, e.Sentence)
		}
		if done, total := all.Count(app); done != 0 || total != 3 {
			t.Errorf("for %s %d of %d have the ConfigMap", name, done, total)
		}
		if done, total := all.Count(db); done != 2 || total != 2 {
			t.Errorf("for %s %d of %d have the Secret", name, done, total)
		}
	}
	w.manage()
	w.ready("app1", "app2")
}

// A release of one ConfigMap is one release, with one count, wherever it is read: nothing is said of the Secret that
// the same workloads use. A content that is newer than the record is not what the record is about.
func TestOneReleaseHasOneCount(t *testing.T) {
	w := newWorld(t)
	w.options.MaxRolling = 1
	k := usesBoth(w, "app1", "app2", "app3", "app4")
	k.breaks("app1")
	w.configMap("app", "a", "bad")
	w.eventually(func() error { return want("ConfigFailed", string(w.explain("app4").Reason)) })
	w.settled()
	app, db := content.Object{Kind: content.ConfigMap, Namespace: w.namespace, Name: "app"}, content.Object{Kind: content.Secret, Namespace: w.namespace, Name: "db"}
	check := func(who string, reader client.Client) {
		t.Helper()
		all, of := w.survey(reader)
		if e := of["app1"]; e.State != config.StateFailed {
			t.Errorf("to %s app1 is %s", who, e.State)
		}
		for name, e := range of {
			if !slices.Equal(e.Behind, []content.Object{app}) {
				t.Errorf("to %s %s is behind %v", who, name, e.Behind)
			}
		}
		r := w.record(content.ConfigMap, "app").Rollout.Units
		if done, total := all.Count(app); done != int(r.Complete) || total != int(r.Total) || done != 0 || total != 4 || r.Failed != 1 {
			t.Errorf("to %s %d of %d have it, and %+v is recorded", who, done, total, r)
		}
		if done, total := all.Count(db); done != 4 || total != 4 {
			t.Errorf("to %s %d of %d have the Secret", who, done, total)
		}
	}
	viewer := w.viewer()
	check("a user", w.client)
	check("a viewer", viewer)
	if r := w.record(content.Secret, "db"); r != nil && r.Rollout != nil {
		t.Errorf("a release of the Secret is recorded: %+v", r.Rollout)
	}
	w.halt()
	check("a user without a manager", w.client)
	w.configMap("app", "a", "good")
	_, of := w.survey(w.client)
	for name, e := range of {
		if e.State != config.StateNotObserved {
			t.Errorf("after the correction %s is %s: %s", name, e.State, e.Sentence)
		}
	}
}

// To a user without permission to read the records, nothing is up to date that is not healthy.
func TestWithoutRecordsNothingUnhealthyIsUpToDate(t *testing.T) {
	w, _, _ := oneFails(t, "app2")
	user := "no-records-" + w.namespace
	w.grant(user, []rbacv1.PolicyRule{{APIGroups: []string{"", "apps"}, Resources: []string{"configmaps", "secrets", "pods", "deployments", "statefulsets", "daemonsets"}, Verbs: []string{"get", "list", "watch"}}})
	_, of := w.survey(clientFor(t, testenv.Shared().ConfigAs(user)))
	if e := of["app1"]; e.State == config.StateUpToDate {
		t.Errorf("what has failed is %s: %s", e.State, e.Sentence)
	}
	if e := of["app2"]; e.State != config.StateNotObserved {
		t.Errorf("what lacks a content is %s: %s", e.State, e.Sentence)
	}
}
