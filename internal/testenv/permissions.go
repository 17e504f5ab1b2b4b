package testenv

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/testenv/fault"
)

// Grant lets a user of the hub do what rules say in a namespace, and nothing else.
func Grant(t testing.TB, c client.Client, namespace, user string, rules []rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "manager"}
	for _, obj := range []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "manager"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		},
	} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
}

// Permissions are those that rules grant, as "VERB RESOURCE.GROUP".
func Permissions(rules []rbacv1.PolicyRule) map[string]bool {
	all := map[string]bool{}
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				all[verb+" "+resource+"."+rule.APIGroups[0]] = true
			}
		}
	}
	return all
}

// Unused is an error that names a permission that no request has needed.
func Unused(granted map[string]bool, requests []fault.Request) error {
	used := Used(requests)
	for permission := range granted {
		if !used[permission] {
			return fmt.Errorf("granted and not used: %s", permission)
		}
	}
	return nil
}

// Used are the permissions that requests have needed. A watch may stream what a list
// would have, and server-side apply may create.
func Used(requests []fault.Request) map[string]bool {
	used := map[string]bool{}
	for _, r := range requests {
		if r.Resource == "" {
			continue
		}
		resource := r.Resource
		if r.Subresource != "" {
			resource += "/" + r.Subresource
		}
		used[r.Verb+" "+resource+"."+r.Group] = true
		switch r.Verb {
		case "watch":
			used["list "+resource+"."+r.Group] = true
		case "patch":
			used["create "+resource+"."+r.Group] = true
		}
	}
	return used
}
