package testenv

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

// Grant lets a user of the hub do what rules say in a namespace, and nothing else. It returns once the API server
// permits it.
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
	WaitPermitted(t, c, namespace, user, &rules[0]) // it sees a Role as a whole
}

// WaitPermitted waits until the API server lets a user do the first of what a rule grants: it watches Roles and their
// bindings.
func WaitPermitted(t testing.TB, c client.Client, namespace, user string, rule *rbacv1.PolicyRule) {
	t.Helper()
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	attributes := map[string]any{"namespace": namespace, "verb": rule.Verbs[0], "group": rule.APIGroups[0], "resource": resource, "subresource": subresource}
	if len(rule.ResourceNames) > 0 {
		attributes["name"] = rule.ResourceNames[0]
	}
	Eventually(t, func(ctx context.Context) error {
		review := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"user": user, "resourceAttributes": attributes}}}
		review.SetAPIVersion("authorization.k8s.io/v1")
		review.SetKind("SubjectAccessReview")
		if err := c.Create(ctx, review); err != nil {
			return fmt.Errorf("ask what %s may do: %w", user, err)
		}
		if allowed, _, _ := unstructured.NestedBool(review.Object, "status", "allowed"); !allowed {
			return fmt.Errorf("%s may not %s %s in namespace %s yet", user, rule.Verbs[0], rule.Resources[0], namespace)
		}
		return nil
	})
}

// definitions are the resource that defines kinds.
const definitions = "customresourcedefinitions"

// Permissions are those that rules grant, as "VERB RESOURCE.GROUP", but for definitions of
// kinds: a manager needs those only while a kind is not installed, and no namespace has them.
func Permissions(rules []rbacv1.PolicyRule) map[string]bool {
	all := map[string]bool{}
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			if resource == definitions {
				continue
			}
			for _, verb := range rule.Verbs {
				all[verb+" "+resource+"."+rule.APIGroups[0]] = true
			}
		}
	}
	return all
}

// Exactly waits until requests have needed each permission, and fails for one that they
// needed besides.
func Exactly(t testing.TB, granted map[string]bool, requests func() []fault.Request) {
	t.Helper()
	AllUsed(t, granted, requests)
	NoneElse(t, granted, requests())
}

// AllUsed waits until requests have needed each permission. A watch may stream what a
// list would have, and server-side apply may create.
func AllUsed(t testing.TB, granted map[string]bool, requests func() []fault.Request) {
	t.Helper()
	Eventually(t, func(context.Context) error {
		used := map[string]bool{}
		for _, r := range requests() {
			for _, verb := range append(alsoBy[r.Verb], r.Verb) {
				used[permission(verb, r)] = true
			}
		}
		// An Event that is repeated is patched; whether one is depends on chance. That
		// it may be is shown by a test of its own, for all rings.
		used["patch events.events.k8s.io"] = used["create events.events.k8s.io"]
		for p := range granted {
			if !used[p] {
				return fmt.Errorf("granted and not used: %s", p)
			}
		}
		return nil
	})
}

// NoneElse fails for each permission that requests have needed and that is not granted.
func NoneElse(t testing.TB, granted map[string]bool, requests []fault.Request) {
	t.Helper()
	for _, r := range requests {
		if p := permission(r.Verb, r); r.Resource != "" && r.Resource != definitions && !granted[p] {
			t.Errorf("used and not granted: %s", p)
		}
	}
}

// alsoBy are the permissions that a request may need beside that of its verb.
var alsoBy = map[string][]string{"watch": {"list"}, "patch": {"create"}}

func permission(verb string, r fault.Request) string {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return verb + " " + resource + "." + r.Group
}

// Without are requests that are not about what a test is about.
func Without(requests []fault.Request, is func(fault.Request) bool) []fault.Request {
	return slices.DeleteFunc(slices.Clone(requests), is)
}
