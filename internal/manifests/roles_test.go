package manifests_test

import (
	"context"
	"fmt"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// Who may view a namespace sees what is rolled in it, and who may edit it says how. What is done with the rights of
// the manager, or holds others, is for neither.
func TestRolesOfANamespace(t *testing.T) {
	c, namespace := testenv.Client(t), testenv.Namespace(t)
	o := manifests.Default(append(manager.Rings(), manager.RingFleet)...)
	o.Namespace = namespace
	all, err := manifests.Objects(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range all {
		labels := obj.GetLabels()
		if labels["rbac.authorization.k8s.io/aggregate-to-view"]+labels["rbac.authorization.k8s.io/aggregate-to-edit"] == "true" {
			testenv.Apply(t, c, obj)
		}
	}
	for _, role := range []string{"view", "edit"} {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: role + "er-of-" + namespace}},
		}
		if err := c.Create(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
	}
	may := func(ctx context.Context, role, verb, group, resource string) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               role + "er-of-" + namespace,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group, Resource: resource},
		}}
		err := c.Create(ctx, review)
		return review.Status.Allowed, err
	}
	for _, test := range []struct {
		group, resource string
		view, edit      bool
	}{
		{"spillway.dev", "configrollouts", true, false},
		{"spillway.dev", "configpolicies", true, true},
		{"spillway.dev", "rolloutgroups", true, true},
		{"rollout-operator.grafana.com", "zoneawarepoddisruptionbudgets", true, true},
		{"spillway.dev", "rolloutgates", true, false},
		{"spillway.dev", "notifiers", true, false},
		{"kudo.dev", "instances", true, false},
		{"kudo.dev", "operatorversions", true, false},
		{"fleet.squaremo.dev", "modules", true, false},
		{"spillway.dev", "clusterconfigpolicies", false, false},
	} {
		for _, is := range []struct {
			role, verb string
			allowed    bool
		}{{"view", "list", test.view}, {"edit", "get", test.view}, {"edit", "patch", test.edit}, {"view", "patch", false}} {
			testenv.Eventually(t, func(ctx context.Context) error { // a controller adds the rules to the roles
				allowed, err := may(ctx, is.role, is.verb, test.group, test.resource)
				if err == nil && allowed != is.allowed {
					err = fmt.Errorf("%ser may %s %s: %t", is.role, is.verb, test.resource, allowed)
				}
				return err
			})
		}
	}
}
