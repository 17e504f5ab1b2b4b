package plans

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// policyName is the name of the guard and of its binding.
const policyName = "plans.spillway.dev"

// Policies are the guard: it refuses changes of the spec of an Instance while a
// plan runs, inside the API server, so that it holds with the manager down. It
// refuses no write of metadata or status, and none that leaves the spec as it was.
// What it lets through [Choose] judges again, with the OperatorVersion in sight.
func Policies() []client.Object {
	fail := admissionregistrationv1.Fail
	rule := admissionregistrationv1.NamedRuleWithOperations{}
	rule.Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Update}
	rule.APIGroups, rule.APIVersions, rule.Resources = []string{v1beta1.GroupVersion.Group}, []string{v1beta1.GroupVersion.Version}, []string{"instances"}
	kind := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: kind}
	}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		TypeMeta: kind("ValidatingAdmissionPolicy"), ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    &fail,
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{rule}},
			Variables:        guardVariables(),
			Validations:      guardValidations(),
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		TypeMeta: kind("ValidatingAdmissionPolicyBinding"), ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policyName, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	return []client.Object{policy, binding}
}

// guardVariables are what the rules of the guard speak of. Each of them is there
// for the object as it was and as it is to be.
func guardVariables() []admissionregistrationv1.Variable {
	field := fieldInCEL
	const version = "spec.operatorVersion."
	key := vocabulary.SupersedePlan.Native
	return []admissionregistrationv1.Variable{
		{Name: "plan", Expression: field("oldObject", "status.aggregatedStatus.activePlan", "''")},
		{Name: "uid", Expression: field("oldObject", "status.execution.uid", "''")},
		{Name: "running", Expression: "variables.plan != ''"},
		{Name: "supersedes", Expression: "variables.uid != '' && has(object.metadata.annotations) && '" + key + "' in object.metadata.annotations && " +
			"object.metadata.annotations['" + key + "'].contains(variables.uid)"},
		{Name: "deleting", Expression: "has(object.metadata.deletionTimestamp)"},
		{Name: "versionChanged", Expression: changedInCEL(version+"name", "''") + " || " +
			"(" + field("object", version+"namespace", "object.metadata.namespace") + ") != (" + field("oldObject", version+"namespace", "object.metadata.namespace") + ")"},
		{Name: "parametersChanged", Expression: changedInCEL("spec.parameters", "{}")},
		{Name: "asked", Expression: field("object", "spec.planExecution.planName", "''")},
		{Name: "askedBefore", Expression: field("oldObject", "spec.planExecution.planName", "''")},
		{Name: "askedAnew", Expression: "variables.asked != variables.askedBefore || " + changedInCEL("spec.planExecution.uid", "''")},
		// A manifest without planExecution is applied again by many tools; that clears it.
		{Name: "left", Expression: "!has(object.spec) || !has(object.spec.planExecution)"},
	}
}

// fieldInCEL is a field in CEL, or something else where it is not there.
func fieldInCEL(object, path, otherwise string) string {
	parts := strings.Split(path, ".")
	var has []string
	for i := range parts {
		has = append(has, "has("+object+"."+strings.Join(parts[:i+1], ".")+")")
	}
	return strings.Join(has, " && ") + " ? " + object + "." + path + " : " + otherwise
}

// changedInCEL is true, in CEL, if an update changes a field.
func changedInCEL(path, otherwise string) string {
	return "(" + fieldInCEL("object", path, otherwise) + ") != (" + fieldInCEL("oldObject", path, otherwise) + ")"
}

// guardValidations are the rules, the most telling first.
func guardValidations() []admissionregistrationv1.Validation {
	rule := func(expression, message string) admissionregistrationv1.Validation {
		return admissionregistrationv1.Validation{Expression: expression, MessageExpression: message}
	}
	key := vocabulary.SupersedePlan.Native
	running := func(what, action string) string {
		return "'plan ' + variables.plan + ' is running: " + what + " " + action + "'"
	}
	action := "when it has ended, or now with annotation " + key + "=' + variables.uid + '"
	return []admissionregistrationv1.Validation{
		rule("!variables.deleting || !variables.versionChanged && !variables.parametersChanged",
			"'the Instance is being deleted: its spec cannot change any more'"),
		rule("!variables.deleting || variables.asked == variables.askedBefore || variables.askedBefore != 'cleanup' && variables.asked == 'cleanup'",
			"'the Instance is being deleted: no plan but cleanup can run any more'"),
		rule("variables.deleting || variables.asked != 'cleanup' || !variables.askedAnew",
			"'plan cleanup runs when the Instance is deleted; ask for another one'"),
		rule("!variables.running || variables.supersedes || !variables.versionChanged", running("spec.operatorVersion can change", action)),
		rule("!variables.running || variables.supersedes || !variables.parametersChanged", running("spec.parameters can change", action)),
		rule("!variables.running || variables.asked == '' || variables.asked == variables.plan || !variables.askedAnew",
			running("spec.planExecution can ask for another plan", "when it has ended")),
		rule("!variables.running || variables.asked != '' || variables.askedBefore == '' || variables.left",
			running("spec.planExecution cannot be cleared;", "to give the plan up, annotate the Instance with "+vocabulary.AbandonPlan.Native+"=' + variables.uid + '")),
		rule("variables.asked == '' || !variables.askedAnew || !variables.versionChanged && !variables.parametersChanged",
			"'spec.planExecution can ask for a plan only if nothing else in the spec changes; make two changes of it'"),
	}
}
