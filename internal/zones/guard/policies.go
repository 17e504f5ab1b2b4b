package guard

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// policyName is the name of the policy and of its binding.
const policyName = "no-downscale.zones.spillway.dev"

const (
	isScaleInCEL = "request.subResource == 'scale'"
	// lowersInCEL is [change.lowers] in CEL. A Scale of no replicas does not say so.
	lowersInCEL = "(has(object.spec.replicas) || " + isScaleInCEL + ") && has(oldObject.spec.replicas) && " +
		"object.spec.?replicas.orValue(0) < oldObject.spec.replicas"
)

// hasLabel is true, in CEL, of objects that had a label set to "true".
func hasLabel(key vocabulary.Key) string {
	var mentioned []string
	for _, name := range key.Names() {
		mentioned = append(mentioned, "oldObject.metadata.?labels['"+name+"'].orValue('') == 'true'")
	}
	return "(" + strings.Join(mentioned, " || ") + ")"
}

// policies forbid to lower the replicas of an object that has the label, with no call
// that leaves the API server; so they hold when the manager is down.
func policies() []client.Object {
	fail := admissionregistrationv1.Fail
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    &fail,
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: scalables()},
			MatchConditions:  []admissionregistrationv1.MatchCondition{{Name: "labelled", Expression: hasLabel(vocabulary.NoDownscale)}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: "!(" + lowersInCEL + ")", MessageExpression: refusedInCEL(),
			}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicyBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policyName, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	return []client.Object{policy, binding}
}

func scalables() []admissionregistrationv1.NamedRuleWithOperations {
	rule := admissionregistrationv1.NamedRuleWithOperations{}
	rule.Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Update}
	rule.APIGroups, rule.APIVersions = []string{appsv1.GroupName}, []string{"v1"}
	rule.Resources = []string{"deployments", "statefulsets", "replicasets"}
	return []admissionregistrationv1.NamedRuleWithOperations{rule}
}

// refusedInCEL is the sentence of [change.refused] in CEL.
func refusedInCEL() string {
	name := "'" + vocabulary.NoDownscale.Native + "'"
	for _, alias := range vocabulary.NoDownscale.Aliases {
		name = "('" + vocabulary.NoDownscale.Native + "' in oldObject.metadata.labels ? " + name + " : '" + alias + "')"
	}
	return "'downscale of ' + request.resource.resource + '/' + request.name + ' in ' + request.namespace + " +
		"' from ' + string(oldObject.spec.replicas) + ' to ' + string(object.spec.?replicas.orValue(0)) + " +
		"' replicas is not allowed because it has the label \\'' + " + name + " + '=true\\''"
}
