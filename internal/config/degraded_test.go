package config_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// manageAs starts a manager with the permissions of a user.
func (w *world) manageAs(user string) {
	w.t.Helper()
	w.as = testenv.Shared().ConfigAs(user)
	w.manage()
}

func (w *world) rules() []rbacv1.PolicyRule {
	w.t.Helper()
	rules, err := manifests.Rules([]string{manager.RingConfig})
	if err != nil {
		w.t.Fatal(err)
	}
	return rules
}

// Without permission for Secrets the workloads that use none are rolled. The others say
// what to grant, and are rolled once it is granted, without a restart of the manager.
func TestWithoutPermissionForSecrets(t *testing.T) {
	w := newWorld(t)
	rules, user := w.rules(), "poor-"+w.namespace
	limited := slices.Clone(rules)
	for i := range limited {
		limited[i].Resources = slices.DeleteFunc(slices.Clone(limited[i].Resources), func(r string) bool { return r == "secrets" })
	}
	w.grant(user, slices.DeleteFunc(limited, func(r rbacv1.PolicyRule) bool { return len(r.Resources) == 0 }))
	w.configMap("app", "a", "1")
	w.secret("db", "p", "1")
	w.apply(deployment("web", envFrom(configMapRef("app"))), deployment("both", envFrom(configMapRef("app"), secretRef("db"))))
	w.manageAs(user)
	first := w.hashed("web", "")
	w.configMap("app", "a", "2")
	w.hashed("web", first)
	w.saysEventually("both", `"type":"Ready","status":"False","reason":"NotPermitted","message":"Secret db cannot be read: forbidden; grant get, list and watch on secrets`)
	if h := w.hash("both"); h != "" {
		t.Errorf("it has the hash %s of what could be read", h)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "manager"}, Rules: rules}
	if err := w.client.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	w.hashed("both", "")
	if c := w.condition("both"); c != "" {
		t.Errorf("it still says %s", c)
	}
}

// The finalizer of wave is removed with a permission for the objects that it is about, and
// until then the workload says so, and is rolled all the same.
func TestWavesFinalizerNeedsNoWidePermission(t *testing.T) {
	w := newWorld(t)
	user := "manager-of-" + w.namespace
	w.grant(user, w.rules())
	w.configMap("app", "a", "1")
	w.apply(deployment("old", envFrom(configMapRef("app"))))
	old := w.deploymentNow("old")
	w.patch(&corev1.ConfigMap{}, "app", fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"old","uid":%q}]}}`, old.UID))
	w.patch(old, "old", `{"metadata":{"finalizers":["wave.pusher.com/finalizer"]}}`)
	w.manageAs(user)
	first := w.hashed("old", "")
	w.eventually(func() error { return want(string(decision.ReasonWaveFinalizer), string(w.explain("old").Reason)) })
	if said := w.explain("old").Sentence; !strings.Contains(said, "it cannot be deleted") || !strings.Contains(said, "(ConfigMap app)") {
		t.Errorf("explain says %s", said)
	}
	w.patch(&corev1.ConfigMap{}, "app", `{"data":{"a":"2"}}`)
	w.hashed("old", first)
	for _, obj := range []client.Object{
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "wave", Namespace: w.namespace}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"app"}, Verbs: []string{"patch"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "wave", Namespace: w.namespace}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "wave"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		},
	} {
		if err := w.client.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	w.eventually(func() error { return want(0, len(w.deploymentNow("old").Finalizers)) })
}
