package manifests

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Roles grant verbs on whole kinds. These policies say which writes of these kinds the
// manager's identity is for, so that a client with its token cannot run their own images in
// the workloads of others, or delete their Pods. The API server evaluates them.
//
// What other clients' webhooks add to a write counts as the manager's. So metadata is
// free, and only what runs is compared.

// The names of the policies.
const (
	podPolicy      = "pods.manager.spillway.dev"
	workloadPolicy = "workloads.manager.spillway.dev"
	// namespacePolicy is for the zones ring alone.
	namespacePolicy = "namespaces.manager.spillway.dev"
)

// identityPolicies restrict what the manager's identity may write.
func (o Options) identityPolicies() []client.Object {
	if o.Unrestricted || !slices.Contains(o.Rings, manager.RingConfig) && !slices.Contains(o.Rings, manager.RingZones) {
		return nil
	}
	pods := admission.On(admissionregistrationv1.Delete, "", "v1", "pods")
	workloads := admission.On(admissionregistrationv1.Update, "apps", "v1", "deployments", "statefulsets", "daemonsets")
	policies := slices.Concat(
		o.identityPolicy(podPolicy, pods, o.deletablePods(), "the manager of Spillway may delete only Pods of StatefulSets, and Pods that it has kept from being scheduled"),
		o.identityPolicy(workloadPolicy, workloads, o.changedFields(), "the manager of Spillway may change only metadata, replicas, the update strategy and what suspends the Pods of a workload"),
	)
	if !slices.Contains(o.Rings, manager.RingZones) {
		return policies
	}
	namespaces := admission.On(admissionregistrationv1.Update, "", "v1", "namespaces")
	return append(policies, o.identityPolicy(namespacePolicy, namespaces, namespaceLabel(), "the manager of Spillway may change only the label "+vocabulary.PreparesScales.Native+" of a namespace")...)
}

// identityPolicy is a policy about the manager's identity, and its binding.
func (o Options) identityPolicy(name string, on *admissionregistrationv1.MatchResources, expression, refusal string) []client.Object {
	m := meta(o, "", o.Namespace+"."+name)
	policy := admission.Policy(m.Name, admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: on,
		MatchConditions: []admissionregistrationv1.MatchCondition{{
			Name: "manager", Expression: "request.userInfo.username == 'system:serviceaccount:" + o.Namespace + ":" + serviceAccountName + "'",
		}},
		Validations: []admissionregistrationv1.Validation{{Expression: expression, Message: refusal}},
	})
	binding := admission.Binding(m.Name, m.Name, admissionregistrationv1.Deny)
	policy.ObjectMeta, binding.ObjectMeta = m, m
	return []client.Object{policy, binding}
}

// deletablePods is true, in CEL, of Pods that some ring may have to delete.
func (o Options) deletablePods() string {
	ways := []string{
		"(oldObject.spec.?nodeName.orValue('') == '' && (" +
			"oldObject.spec.?schedulingGates.orValue([]).exists(g, g.name == '" + vocabulary.SchedulingGate + "') || " +
			"oldObject.spec.?schedulerName.orValue('') == '" + vocabulary.SuspendedScheduler + "'))",
	}
	if slices.Contains(o.Rings, manager.RingZones) {
		ways = append(ways, "oldObject.metadata.?ownerReferences.orValue([]).exists(r, "+
			"r.kind == 'StatefulSet' && r.apiVersion == 'apps/v1' && r.?controller.orValue(false))")
	}
	if slices.Contains(o.Rings, manager.RingPlans) {
		ways = append(ways, ofPackage("oldObject"))
	}
	return strings.Join(ways, " || ")
}

// changedFields is true, in CEL, if nothing in a workload has changed but what some ring
// writes there.
func (o Options) changedFields() string {
	spec := []string{"template"}
	if slices.Contains(o.Rings, manager.RingZones) {
		spec = append(spec, "replicas", "updateStrategy")
	}
	unchanged := strings.Join([]string{
		equalBut("spec", spec...),
		equalBut("spec.template", "metadata", "spec"),
		equalBut("spec.template.spec", "schedulingGates", "schedulerName"),
	}, " && ")
	if slices.Contains(o.Rings, manager.RingPlans) {
		return ofPackage("object") + " || (" + unchanged + ")"
	}
	return unchanged
}

// namespaceLabel is true, in CEL, if nothing in a namespace has changed but the label that
// the zones ring writes.
func namespaceLabel() string {
	labels := func(of string) string {
		return of + ".metadata.?labels.orValue({}).all(k, k == '" + vocabulary.PreparesScales.Native + "' || " +
			"object.metadata.?labels[?k].orValue('') == oldObject.metadata.?labels[?k].orValue(''))"
	}
	const annotations = ".metadata.?annotations.orValue({})"
	return labels("object") + " && " + labels("oldObject") + " && object" + annotations + " == oldObject" + annotations +
		" && object.?spec == oldObject.?spec"
}

// ofPackage is true, in CEL, of what the plans ring has applied, which may be anything.
func ofPackage(object string) string {
	return object + ".metadata.?labels[?'" + vocabulary.Heritage + "'].orValue('') == '" + vocabulary.HeritageOf + "'"
}

// equalBut is true, in CEL, if a part of the object has the fields that it had, but for
// some.
func equalBut(path string, except ...string) string {
	is, was, list := "object."+path, "oldObject."+path, "['"+strings.Join(except, "', '")+"']"
	return "dyn(" + is + ").all(k, k in " + list + " || (k in dyn(" + was + ") && dyn(" + is + ")[k] == dyn(" + was + ")[k])) && " +
		"dyn(" + was + ").all(k, k in " + list + " || k in dyn(" + is + "))"
}
