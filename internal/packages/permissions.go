package packages

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/render"
	"github.com/spillway-dev/spillway/internal/source"
)

// verbs are what the manager does with objects of packages.
var verbs = []string{"get", "list", "watch", "create", "patch", "delete"}

// Permissions are what the manager needs to run the plans of a package, for namespaced
// kinds and for the others. The templates of all tasks are rendered with the parameters, so
// a kind that only other parameters render is not among them.
func (p *Package) Permissions(parameters map[string]string) (namespaced, cluster []rbacv1.PolicyRule, _ error) {
	version, err := p.VersionObject()
	if err != nil {
		return nil, nil, err
	}
	values, _ := choice.Values(&version.Spec, parameters, nil) // of a wrong one the text is rendered
	context := render.Context{
		Name: "name", Namespace: "namespace", OperatorName: p.Operator.Name, OperatorVersion: version.Spec.Version, AppVersion: version.Spec.AppVersion,
		PlanName: v1beta1.DeployPlan, PhaseName: "phase", StepName: "step", Params: values, Pipes: map[string]string{},
	}
	var n needs
	for i := range p.Operator.Tasks {
		n.addPipe(&p.Operator.Tasks[i], context.Pipes)
	}
	for i := range p.Operator.Tasks {
		objects, err := p.objectsOf(&p.Operator.Tasks[i].Spec, context)
		if err != nil {
			return nil, nil, err
		}
		for _, u := range objects {
			n.add(u)
		}
	}
	return compacted(n.namespaced), compacted(n.cluster), nil
}

// objectsOf are those that a task renders.
func (p *Package) objectsOf(t *v1beta1.TaskSpec, context render.Context) (all []*unstructured.Unstructured, _ error) {
	for _, name := range t.Resources {
		objects, err := render.Objects(name, p.Templates[name], context, "")
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	if t.Chart == "" {
		return all, nil
	}
	chart := render.Chart{Name: t.Chart, Archive: p.Templates[t.Chart], ValuesName: t.Values, Values: p.Templates[t.Values]}
	objects, err := chart.Objects(context)
	return append(all, objects...), err
}

// needs are the permissions that were found.
type needs struct{ namespaced, cluster []rbacv1.PolicyRule }

func (n *needs) add(u *unstructured.Unstructured) {
	gvk := u.GroupVersionKind()
	if to, isRetired := object.Successor(gvk); isRetired && !to.Empty() {
		gvk.Group = to.Group
	}
	plural, _ := apimeta.UnsafeGuessKindToResource(gvk)
	rule := rbacv1.PolicyRule{APIGroups: []string{gvk.Group}, Resources: []string{plural.Resource}, Verbs: verbs}
	into := &n.cluster
	if source.IsNamespaced(gvk.GroupKind()) {
		into = &n.namespaced
	}
	*into = append(append(*into, rule), granted(u)...)
	if gvk.GroupKind() == object.CRDKind { // what a change of it breaks is asked before
		group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(u.Object, "spec", "names", "plural")
		n.cluster = append(n.cluster, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{plural}, Verbs: []string{"list"}})
	}
}

// addPipe adds what a task with Pods needs, and the names of what it keeps.
func (n *needs) addPipe(t *v1beta1.Task, pipes map[string]string) {
	if t.Kind != v1beta1.PipeTask {
		return
	}
	n.namespaced = append(n.namespaced,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: verbs},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"create", "get"}})
	for _, file := range t.Spec.Pipe {
		pipes[file.Key] = "name"
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: file.Kind})
		n.add(u)
	}
}

// granted are the permissions that a role or a binding gives to others: the API server lets
// only those create it who have them, or who may bind the role.
func granted(u *unstructured.Unstructured) []rbacv1.PolicyRule {
	if u.GroupVersionKind().Group != rbacv1.GroupName {
		return nil
	}
	switch u.GetKind() {
	case "Role", "ClusterRole":
		role := &rbacv1.ClusterRole{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, role) != nil {
			return nil // the API server says what is wrong with it
		}
		return role.Rules
	case "RoleBinding", "ClusterRoleBinding":
		kind, _, _ := unstructured.NestedString(u.Object, "roleRef", "kind")
		name, _, _ := unstructured.NestedString(u.Object, "roleRef", "name")
		resource := map[string]string{"Role": "roles", "ClusterRole": "clusterroles"}[kind]
		return []rbacv1.PolicyRule{{APIGroups: []string{rbacv1.GroupName}, Resources: []string{resource}, ResourceNames: []string{name}, Verbs: []string{"bind"}}}
	default:
		return nil
	}
}

// compacted are rules in one order, each once; those for kinds of one group are one.
func compacted(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var merged []rbacv1.PolicyRule
	for _, r := range rules {
		i := slices.IndexFunc(merged, func(m rbacv1.PolicyRule) bool {
			return slices.Equal(m.APIGroups, r.APIGroups) && slices.Equal(m.Verbs, r.Verbs) && slices.Equal(m.ResourceNames, r.ResourceNames) && slices.Equal(m.NonResourceURLs, r.NonResourceURLs)
		})
		if i < 0 {
			r.Resources = slices.Clone(r.Resources)
			merged = append(merged, r)
			continue
		}
		merged[i].Resources = append(merged[i].Resources, r.Resources...)
	}
	for i := range merged {
		slices.Sort(merged[i].Resources)
		merged[i].Resources = slices.Compact(merged[i].Resources)
	}
	slices.SortStableFunc(merged, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(slices.Compare(a.APIGroups, b.APIGroups), slices.Compare(a.Resources, b.Resources), slices.Compare(a.Verbs, b.Verbs))
	})
	return merged
}
