package manifests_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// dashboardOf are the objects of a dashboard, by kind.
func dashboardOf(t *testing.T, d manifests.Dashboard) map[string]client.Object {
	t.Helper()
	o := manifests.Default(manager.Rings()...)
	o.Namespace, o.Image, o.Values.Dashboard = "system", "x", d
	all, err := manifests.Objects(o)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]client.Object{}
	for _, obj := range testenv.Typed(t, all) {
		if obj.GetLabels()["app.kubernetes.io/component"] == "dashboard" {
			found[obj.GetObjectKind().GroupVersionKind().Kind] = obj
		}
	}
	return found
}

// There is no dashboard unless it is asked for; its account may impersonate who is named, and
// nothing else.
func TestDashboardObjects(t *testing.T) {
	if found := dashboardOf(t, manifests.DefaultValues().Dashboard); len(found) > 0 {
		t.Errorf("it is installed by default: %v", found)
	}
	for name, test := range map[string]struct {
		users, groups []string
		want          map[string][]string
	}{
		"all users": {[]string{manifests.All}, nil, map[string][]string{"users": nil}},
		"some":      {[]string{"anna"}, []string{"ops", "dev"}, map[string][]string{"users": {"anna"}, "groups": {"ops", "dev"}}},
		"all":       {[]string{manifests.All}, []string{"ops", manifests.All}, map[string][]string{"users": nil, "groups": nil}},
		"no user":   {nil, nil, map[string][]string{}},
	} {
		found := dashboardOf(t, manifests.Dashboard{Enabled: true, Users: test.users, Groups: test.groups})
		role, _ := found["ClusterRole"].(*rbacv1.ClusterRole)
		if len(role.Rules) != len(test.want) {
			t.Errorf("%s: %v", name, role.Rules)
		}
		for _, rule := range role.Rules {
			names, ok := test.want[rule.Resources[0]]
			if !ok || !slices.Equal(rule.ResourceNames, names) || !slices.Equal(rule.Verbs, []string{"impersonate"}) || len(rule.Resources) != 1 {
				t.Errorf("%s: %v", name, rule)
			}
		}
	}
}

// It lives in a namespace of its own, all of it, unless another is named.
func TestTheDashboardHasANamespace(t *testing.T) {
	for name, test := range map[string]struct {
		namespace, want string
		isMade          bool
	}{"by default": {"", "system-dashboard", true}, "as named": {"pages", "pages", true}, "with the manager": {"system", "system", false}} {
		found := dashboardOf(t, manifests.Dashboard{Enabled: true, Users: []string{"anna"}, Namespace: test.namespace})
		for kind, obj := range found {
			if in := obj.GetNamespace(); in != "" && in != test.want {
				t.Errorf("%s: its %s is in namespace %s", name, kind, in)
			}
		}
		if made := found["Namespace"]; (made != nil) != test.isMade || test.isMade && (made.GetName() != test.want || made.GetLabels()["pod-security.kubernetes.io/enforce"] != "restricted") {
			t.Errorf("%s: namespace %v", name, made)
		}
		binding, _ := found["ClusterRoleBinding"].(*rbacv1.ClusterRoleBinding)
		if binding.Subjects[0].Namespace != test.want {
			t.Errorf("%s: the rights are those of %v", name, binding.Subjects[0])
		}
	}
}

// Its Pod is one of the restricted kind, reached by its own Service, and none of the manager's.
func TestDashboardPod(t *testing.T) {
	found := dashboardOf(t, manifests.Dashboard{Enabled: true, Steering: true, Users: []string{"anna"}, Groups: []string{"ops", "dev"}, Args: []string{"--url=https://a.example.test"}})
	deployment, _ := found["Deployment"].(*appsv1.Deployment)
	pod := deployment.Spec.Template
	if labels.SelectorFromSet(manifests.ManagerLabels()).Matches(labels.Set(pod.Labels)) || labels.SelectorFromSet(manifests.ManagerLabels()).Matches(labels.Set(deployment.Labels)) {
		t.Error("it is taken for the manager")
	}
	service, _ := found["Service"].(*corev1.Service)
	for _, selector := range []map[string]string{service.Spec.Selector, deployment.Spec.Selector.MatchLabels, {"app.kubernetes.io/component": "dashboard"}} {
		if !labels.SelectorFromSet(selector).Matches(labels.Set(pod.Labels)) {
			t.Errorf("%v does not select %v", selector, pod.Labels)
		}
	}
	want := []string{"dashboard", "serve", "--tls-dir=/certificates", "--oidc-client-secret-file=/dashboard/client-secret", "--session-key-file=/dashboard/session-key", "--steering", "--groups=ops,dev", "--url=https://a.example.test"}
	if got := pod.Spec.Containers[0].Args; !slices.Equal(got, want) {
		t.Errorf("it runs with %q", got)
	}
	c, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: testenv.Namespace(t)}, namespace); err != nil {
		t.Fatal(err)
	}
	metav1.SetMetaDataLabel(&namespace.ObjectMeta, "pod-security.kubernetes.io/enforce", "restricted")
	if err := c.Update(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: pod.Spec.ServiceAccountName}}
	if err := c.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	one := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "dashboard"}, Spec: pod.Spec}
	if err := c.Create(t.Context(), one, client.DryRunAll); err != nil {
		t.Errorf("the API server refuses its Pod: %v", err)
	}
}
