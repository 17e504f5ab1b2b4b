package certificate_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/admission/certificate"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// The manager lives with nothing but what is installed for it, bound to names;
// and uses all of that.
func TestEveryPermissionIsUsedAndNoOtherIsNeeded(t *testing.T) {
	w := newWorld(t, fail, labels)
	user := "manager-of-" + w.namespace
	listed := w.namespace + "-listed"
	o := manifests.Default(manager.RingPlans)
	o.Namespace, o.Values.Webhooks.Configurations = "any", []string{w.namespace, listed}
	kept, err := o.RulesOfRole(admission.ServiceName)
	if err != nil {
		t.Fatal(err)
	}
	injection, err := o.RulesOfRole("any.admission.spillway.dev")
	if err != nil {
		t.Fatal(err)
	}
	granted := slices.Concat(kept, injection)
	w.grant(user, kept, injection)
	limited, err := client.New(testenv.Shared().ConfigAs(user), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := certificate.KeepMaterial(t.Context(), limited, nil, w.webhooks.Options); err == nil || !strings.Contains(err.Error(), "install Spillway again") {
		t.Errorf("without a Secret: %v", err)
	}
	w.createSecret(nil) // which an installation makes
	inj := fault.New()
	w.serve(inj.Wrap(testenv.Shared().ConfigAs(user)), func(o *admission.Options) { o.Only = []string{listed} })
	w.webhooks.WaitServed(t)
	w.user(listed, w.asks())
	w.injected(listed)
	first := w.servesOther(nil)
	w.changeSecret(func(s *corev1.Secret) {
		s.Data = map[string][]byte{certificate.KeyLeaf: []byte("x"), certificate.KeyLeafKey: []byte("y")}
	})
	w.servesOther(first)

	testenv.Exactly(t, testenv.Permissions(granted), func() []fault.Request {
		return testenv.Without(inj.Requests(), func(r fault.Request) bool { return r.Resource == "leases" || r.Resource == "events" }) // of the election
	})
}

// grant gives a user these rules, and what it takes to lead.
func (w *world) grant(user string, inNamespace, inCluster []rbacv1.PolicyRule) {
	w.t.Helper()
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	lead := rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io", ""}, Resources: []string{"leases", "events"}, Verbs: []string{"create", "get", "update", "patch"}}
	named, name := metav1.ObjectMeta{Name: "manager", Namespace: w.namespace}, metav1.ObjectMeta{Name: user}
	for _, obj := range []client.Object{
		&rbacv1.Role{ObjectMeta: named, Rules: append(slices.Clone(inNamespace), lead)},
		&rbacv1.RoleBinding{ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "manager"}, Subjects: subjects},
		&rbacv1.ClusterRole{ObjectMeta: name, Rules: inCluster},
		&rbacv1.ClusterRoleBinding{ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user}, Subjects: subjects},
	} {
		if err := w.client.Create(w.t.Context(), obj); err != nil {
			w.t.Fatal(err)
		}
		if obj.GetNamespace() == "" {
			w.t.Cleanup(func() {
				if err := w.client.Delete(context.Background(), obj); err != nil {
					w.t.Log(err)
				}
			})
		}
	}
}
