package plans_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// grant gives a user what the manager of single namespaces is given.
func (c *cluster) grant(user string, rules ...rbacv1.PolicyRule) {
	c.t.Helper()
	for _, obj := range []client.Object{
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "manager", Namespace: c.namespace}, Rules: rules},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "manager", Namespace: c.namespace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "manager"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		},
	} {
		if err := c.client.Create(c.t.Context(), obj); err != nil {
			c.t.Fatal(err)
		}
	}
}

// TestThePermissionsSuffice runs a plan with every kind of task, and a cleanup,
// with nothing but the permissions that are installed.
func TestThePermissionsSuffice(t *testing.T) {
	rules, err := manifests.Rules([]string{manager.RingPlans})
	if err != nil {
		t.Fatal(err)
	}
	c := twelveSteps(t)
	c.grant("manager-of-"+c.namespace, slices.Concat(rules, packageRules(t))...)
	c.config = testenv.Shared().ConfigAs("manager-of-" + c.namespace)
	c.operator("noted-1", replace(noted, "%s", "1"))
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
	c.instance("other", "noted-1")
	c.rests("other", "deploy Complete")
	c.change("web", set("EXTRA", "false"))
	c.rests("web", "deploy Complete, update Complete")
}

// TestAPermissionThatIsMissingIsTold: without the permissions for what a package
// consists of, the plan says what it may not do, and goes on once it may.
func TestAPermissionThatIsMissingIsTold(t *testing.T) {
	rules, err := manifests.Rules([]string{manager.RingPlans})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(t)
	user := "manager-of-" + c.namespace
	c.grant(user, rules...)
	c.config = testenv.Shared().ConfigAs(user)
	c.operator("app-1", one("{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}"))
	c.manage()
	c.instance("web", "app-1")
	c.waits("web", "no permission to read ConfigMap app")
	if got := c.now("web").Status.WaitingFor; !strings.Contains(got, "spillway install --package-kinds") {
		t.Errorf("it does not say how to fix that: %s", got)
	}
	c.allow(append(rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}})...)
	c.waits("web", "cannot patch resource \"configmaps\"")
	c.allow(slices.Concat(rules, packageRules(t))...)
	c.rests("web", "deploy Complete")
}

// allow replaces what the manager may do.
func (c *cluster) allow(rules ...rbacv1.PolicyRule) {
	c.t.Helper()
	role := &rbacv1.Role{}
	if err := c.get(role, "manager"); err != nil {
		c.t.Fatal(err)
	}
	role.Rules = rules
	if err := c.client.Update(c.t.Context(), role); err != nil {
		c.t.Fatal(err)
	}
}

// packageRules are the permissions for the kinds that most packages consist of.
func packageRules(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	o := manifests.Default(manager.RingPlans)
	o.Values.PackageKinds = true
	rules, err := o.RulesOfRole("spillway-packages-kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	return rules
}
