package pin

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// PolicyName is the name of the policy and of its binding.
const PolicyName = "pins.config.spillway.dev"

// PolicyKind is the kind of the policy, which API servers have since Kubernetes 1.36.
var PolicyKind = admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicy")

// bindingKind is the kind of its binding.
var bindingKind = admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicyBinding")

// Policy is the policy that does to each Pod that is created what [Rewrite] does, those that do
// to Jobs what [Hold] and [Inherit] do, and their bindings to some namespaces. A Pod that it
// cannot rewrite is refused: with its pins it must never start with another content.
func Policy(namespaces Namespaces) []client.Object {
	var objects []client.Object
	for _, r := range rules() {
		objects = append(objects, bound(r.name, r.spec, namespaces)...)
	}
	return objects
}

// rule is what is done to objects of a kind when they are written.
type rule struct {
	name, kind string
	spec       *admissionregistrationv1.MutatingAdmissionPolicySpec
}

func rules() []rule {
	return []rule{
		{PolicyName, "pod", podPolicy()},
		{"jobs." + PolicyName, "job", holdPolicy()},
		{"cronjobs." + PolicyName, "cronjob", inheritPolicy()},
	}
}

// podPolicy does what [Rewrite] does.
func podPolicy() *admissionregistrationv1.MutatingAdmissionPolicySpec {
	return &admissionregistrationv1.MutatingAdmissionPolicySpec{
		MatchConstraints: matching("", "pods", admissionregistrationv1.Create),
		MatchConditions: []admissionregistrationv1.MatchCondition{{
			Name: "pinned", Expression: "has(object.metadata.annotations) && '" + vocabulary.Pins.Native + "' in object.metadata.annotations",
		}},
		Variables: variables(),
		Mutations: []admissionregistrationv1.Mutation{{
			PatchType: admissionregistrationv1.PatchTypeJSONPatch,
			JSONPatch: &admissionregistrationv1.JSONPatch{Expression: patches()},
		}},
	}
}

// bound is a policy and its binding to some namespaces.
func bound(name string, spec *admissionregistrationv1.MutatingAdmissionPolicySpec, namespaces Namespaces) []client.Object {
	fail := admissionregistrationv1.Fail
	spec.FailurePolicy = &fail
	spec.ReinvocationPolicy = admissionregistrationv1.NeverReinvocationPolicy // twice would add the suffix twice
	return []client.Object{
		&admissionregistrationv1.MutatingAdmissionPolicy{TypeMeta: typeOf(PolicyKind), ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: *spec},
		&admissionregistrationv1.MutatingAdmissionPolicyBinding{
			TypeMeta: typeOf(bindingKind), ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name, MatchResources: &admissionregistrationv1.MatchResources{NamespaceSelector: namespaces.LabelSelector()}},
		},
	}
}

func typeOf(kind schema.GroupVersionKind) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind}
}

func matching(group, resource string, operations ...admissionregistrationv1.OperationType) *admissionregistrationv1.MatchResources {
	rule := admissionregistrationv1.NamedRuleWithOperations{}
	rule.Operations = operations
	rule.APIGroups, rule.APIVersions, rule.Resources = []string{group}, []string{"v1"}, []string{resource}
	return &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{rule}}
}

// variables are the pins, and for each kind of list in a Pod the paths of references with
// what they become. A map of the pins keeps the cost linear, which the API server bounds.
func variables() []admissionregistrationv1.Variable {
	const entries = "object.metadata.annotations['%s'].split(',').map(p, p.split('='))"
	// What is no pin becomes an empty list, of which there is no first item: the Pod is refused.
	const named = "variables.entries.map(e, size(e) == 2 && e[1] != '' && (" +
		"e[0].startsWith('cm/') && e[0] != 'cm/' || e[0].startsWith('secret/') && e[0] != 'secret/') ? " +
		"[e[0], e[0].substring(e[0].indexOf('/') + 1), e[1]] : [])"
	const pins = "variables.named.transformMapEntry(i, e, {e[0]: " +
		"(size(e[1]) <= %[1]d ? e[1] : e[1].substring(0, %[1]d).endsWith('.') ? e[1].substring(0, %[1]d - 1) : e[1].substring(0, %[1]d)) + '-' + e[2]})"
	vars := []admissionregistrationv1.Variable{
		{Name: "entries", Expression: fmt.Sprintf(entries, vocabulary.Pins.Native)},
		{Name: "named", Expression: named},
		{Name: "pins", Expression: fmt.Sprintf(pins, longestName)},
	}
	for _, l := range lists() {
		vars = append(vars, admissionregistrationv1.Variable{Name: l.name, Expression: l.expression})
	}
	return vars
}

type list struct{ name, expression string }

func lists() []list {
	volumes := func(field string, of ref) string {
		return "object.spec.?volumes.orValue([]).transformList(i, v, has(v." + field + ") && " + of.isPinned("v."+field) +
			", ['/spec/volumes/' + string(i) + '/" + field + "/" + of.field + "', " + of.snapshot("v."+field) + "])"
	}
	projected := func(field string, of ref) string {
		return "object.spec.?volumes.orValue([]).transformList(i, v, has(v.projected), v.projected.?sources.orValue([])" +
			".transformList(j, s, has(s." + field + ") && " + of.isPinned("s."+field) +
			", ['/spec/volumes/' + string(i) + '/projected/sources/' + string(j) + '/" + field + "/name', " + of.snapshot("s."+field) + "])).flatten()"
	}
	inContainers := func(in, items, field string, of ref) string {
		path := strings.ReplaceAll(field, ".", "/")
		exists := "has(e." + field + ")"
		if parent, _, nested := strings.Cut(field, "."); nested {
			exists = "has(e." + parent + ") && " + exists
		}
		return "object.spec.?" + in + ".orValue([]).transformList(i, c, c.?" + items + ".orValue([]).transformList(j, e, " + exists + " && " + of.isPinned("e."+field) +
			", ['/spec/" + in + "/' + string(i) + '/" + items + "/' + string(j) + '/" + path + "/name', " + of.snapshot("e."+field) + "])).flatten()"
	}
	cm, secret := ref{"cm/", "name"}, ref{"secret/", "name"}
	all := []list{
		{"configMapVolumes", volumes("configMap", cm)},
		{"secretVolumes", volumes("secret", ref{"secret/", "secretName"})},
		{"projectedConfigMaps", projected("configMap", cm)},
		{"projectedSecrets", projected("secret", secret)},
	}
	for _, in := range []string{"containers", "initContainers"} {
		all = append(
			all,
			list{in + "EnvFromConfigMaps", inContainers(in, "envFrom", "configMapRef", cm)},
			list{in + "EnvFromSecrets", inContainers(in, "envFrom", "secretRef", secret)},
			list{in + "EnvConfigMaps", inContainers(in, "env", "valueFrom.configMapKeyRef", cm)},
			list{in + "EnvSecrets", inContainers(in, "env", "valueFrom.secretKeyRef", secret)},
		)
	}
	return all
}

// ref is a reference in a Pod: how its kind is called in pins, and the field with the name.
type ref struct{ prefix, field string }

func (r ref) key(at string) string {
	return "'" + r.prefix + "' + " + at + ".?" + r.field + ".orValue('')"
}

func (r ref) isPinned(at string) string { return r.key(at) + " in variables.pins" }

func (r ref) snapshot(at string) string { return "variables.pins[" + r.key(at) + "]" }

// patches are one operation for each reference with a pin.
func patches() string {
	names := make([]string, 0, len(lists()))
	for _, l := range lists() {
		names = append(names, "variables."+l.name)
	}
	return "(" + strings.Join(names, " + ") + ").map(x, JSONPatch{op: 'replace', path: x[0], value: x[1]})"
}
