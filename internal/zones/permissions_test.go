package zones_test

import (
	"maps"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/gates"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/notify"
)

// TestEveryPermissionIsUsedAndNoOtherIsNeeded runs the story with nothing but the
// generated role, in namespaced mode, and compares what was granted with what was
// asked for.
func TestEveryPermissionIsUsedAndNoOtherIsNeeded(t *testing.T) {
	w := newWorld(t)
	rules, err := manifests.RulesOf(manager.RingZones)
	if err != nil {
		t.Fatal(err)
	}
	user := "manager-of-" + w.namespace
	w.grant(user, rules)
	inj := fault.New()
	run := manager.Options{Rings: []string{manager.RingZones}, Namespaces: w.options.Namespaces, Zones: w.options, Gates: gates.Options{Off: true}, Notify: notify.Options{Off: true}}
	hooks := testenv.RegisterWebhooks(t, w.namespace, run.Declarations(manager.RingZones).Webhooks)
	run.Admission = hooks.Options
	stop := w.barrier.Run(t, testenv.Shared().ConfigAs(user), inj, run)
	w.tell(rollingUpdate, noFault)
	w.another("other") // of type OnDelete
	w.seenTo("other")
	w.roll("v2", "other")
	w.runs("other: v2")
	w.another("gated")
	w.seenTo("gated")
	w.gateOfTwoRevisions("gated")
	w.remove(&appsv1.StatefulSet{}, "other") // and so its group goes
	hooks.WaitServed(t)
	w.scaleStory(hooks)

	granted := testenv.Permissions(rules)
	used := maps.Clone(granted)
	// Controllers before Kubernetes 1.37 do not do this automatically; later ones do.
	delete(used, "patch statefulsets/status.apps")
	// Only a delete that was permitted and is not wanted any more is withdrawn by this; the
	// story has none for sure.
	delete(used, "patch pods/status.")
	requests := func() []fault.Request {
		return testenv.Without(inj.Requests(), func(r fault.Request) bool { // of the certificate
			return r.Resource == "secrets" || r.Group == admissionregistrationv1.GroupName
		})
	}
	testenv.AllUsed(t, used, requests)
	testenv.NoneElse(t, granted, requests())
	stop()
}

func (w *world) grant(user string, rules []rbacv1.PolicyRule) {
	w.t.Helper()
	o := manifests.Default(manager.RingPlans)
	o.Namespace, o.Values.Webhooks.Configurations = "any", []string{w.namespace}
	certificate, err := o.RulesOfRole("spillway-webhooks")
	if err != nil {
		w.t.Fatal(err)
	}
	injection, err := o.RulesOfRole("any.admission.spillway.dev")
	if err != nil {
		w.t.Fatal(err)
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	w.create(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: admission.SecretName}}, // which an installation makes
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "manager"}, Rules: append(slices.Clone(rules), certificate...)},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "manager"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "manager"}, Subjects: subjects,
		},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: injection},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user}, Subjects: subjects,
		},
	)
}
