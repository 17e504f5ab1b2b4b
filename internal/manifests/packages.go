package manifests

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// packagesRole is the role by which the plans ring applies what packages render.
const packagesRole = name + "-packages"

// packagePermissions are what the plans ring needs besides its own permissions:
// those to apply what packages consist of, which is not known beforehand. In the
// whole cluster they are aggregated from ClusterRoles with a label, of which one
// comes with the installation; in single namespaces there are Roles, which cannot
// be aggregated, so that more of them are bound by hand.
func packagePermissions(o Options) []client.Object {
	if !slices.Contains(o.Rings, manager.RingPlans) {
		return nil
	}
	var objects []client.Object
	for _, watched := range o.Watch {
		if o.PackageKinds {
			objects = append(objects, namespacedRole(o, watched, packagesRole, PackageRules()), roleBinding(o, watched, packagesRole))
		}
	}
	if len(o.Watch) > 0 {
		return objects
	}
	if o.PackageKinds {
		kinds := &rbacv1.ClusterRole{TypeMeta: rbacType("ClusterRole"), ObjectMeta: meta(o, "", packagesRole+"-kubernetes"), Rules: PackageRules()}
		kinds.Labels[vocabulary.PackagePermissions] = "true"
		objects = append(objects, kinds)
	}
	selector := metav1.LabelSelector{MatchLabels: map[string]string{vocabulary.PackagePermissions: "true"}}
	return append(objects,
		&rbacv1.ClusterRole{
			TypeMeta: rbacType("ClusterRole"), ObjectMeta: meta(o, "", packagesRole),
			AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{selector}},
		},
		&rbacv1.ClusterRoleBinding{
			TypeMeta: rbacType("ClusterRoleBinding"), ObjectMeta: meta(o, "", packagesRole),
			RoleRef: roleRef("ClusterRole", packagesRole), Subjects: subjects(o),
		})
}

// PackageRules are for the kinds of Kubernetes that most packages consist of.
// Roles and their bindings are not among them, nor is anything that lives outside
// of namespaces: who may write those may do anything. Pods can be run in, to read the
// files of Pipes.
func PackageRules() []rbacv1.PolicyRule {
	verbs := []string{"get", verbList, verbWatch, verbCreate, "patch", "delete"}
	rule := func(group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{verbCreate, "get"}},
		rule("", "configmaps", "persistentvolumeclaims", "pods", "secrets", "serviceaccounts", "services"),
		rule("apps", "daemonsets", "deployments", "statefulsets"),
		rule("autoscaling", "horizontalpodautoscalers"),
		rule("batch", "cronjobs", "jobs"),
		rule("networking.k8s.io", "ingresses", "networkpolicies"),
		rule("policy", "poddisruptionbudgets"),
	}
}
