package admit

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// policyName is the name of the guard and of its binding.
const policyName = "plans.spillway.dev"

// Policies are the guard: it refuses changes of the spec of an Instance while a plan is
// running, inside the API server, so that it holds with the manager down. It refuses no
// write of metadata or status, and none that leaves the spec as it was. The controller
// judges what it admits again, with the OperatorVersion ([choice.Choose]).
func Policies() []client.Object {
	return []client.Object{
		admission.Policy(policyName, admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: admission.On(admissionregistrationv1.Update, v1beta1.GroupVersion.Group, v1beta1.GroupVersion.Version, "instances"),
			Variables:        guardVariables(),
			Validations:      guardValidations(),
		}),
		admission.Binding(policyName, policyName, admissionregistrationv1.Deny),
	}
}

// guardVariables are the variables of the rules.
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
		{Name: "parametersChanged", Expression: changedInCEL("spec.parameters", "{}") + " || " + changedInCEL("spec.parametersFrom", "[]")},
		{Name: "requested", Expression: field("object", "spec.planExecution.planName", "''")},
		{Name: "requestedBefore", Expression: field("oldObject", "spec.planExecution.planName", "''")},
		{Name: "newRequest", Expression: "variables.requested != variables.requestedBefore || " + changedInCEL("spec.planExecution.uid", "''")},
		// Many tools apply a manifest without planExecution again, which clears it.
		{Name: "omitted", Expression: "!has(object.spec) || !has(object.spec.planExecution)"},
	}
}

// changedInCEL is true, in CEL, if an update changes a field.
func changedInCEL(path, otherwise string) string {
	return "(" + fieldInCEL("object", path, otherwise) + ") != (" + fieldInCEL("oldObject", path, otherwise) + ")"
}

// fieldInCEL is a field in CEL, or otherwise if it is not set.
func fieldInCEL(object, path, otherwise string) string {
	parts := strings.Split(path, ".")
	var has []string
	for i := range parts {
		has = append(has, "has("+object+"."+strings.Join(parts[:i+1], ".")+")")
	}
	return strings.Join(has, " && ") + " ? " + object + "." + path + " : " + otherwise
}

// guardValidations are the rules, the most specific first.
func guardValidations() []admissionregistrationv1.Validation {
	rule := func(expression, message string) admissionregistrationv1.Validation {
		return admissionregistrationv1.Validation{Expression: expression, MessageExpression: message}
	}
	key := vocabulary.SupersedePlan.Native
	running := func(what, action string) string {
		return "'plan ' + variables.plan + ' is running: " + what + " " + action + "'"
	}
	action := "after it has ended, or now with annotation " + key + "=' + variables.uid + '"
	return []admissionregistrationv1.Validation{
		rule("!variables.deleting || !variables.versionChanged && !variables.parametersChanged",
			"'the Instance is being deleted: its spec can no longer change'"),
		rule("!variables.deleting || variables.requested == variables.requestedBefore || variables.requestedBefore != 'cleanup' && variables.requested == 'cleanup'",
			"'the Instance is being deleted: only plan cleanup can run'"),
		rule("variables.deleting || variables.requested != 'cleanup' || !variables.newRequest",
			"'plan cleanup runs when the Instance is deleted; request another plan'"),
		rule("!variables.running || variables.supersedes || !variables.versionChanged", running("spec.operatorVersion can change", action)),
		rule("!variables.running || variables.supersedes || !variables.parametersChanged", running("spec.parameters can change", action)),
		rule("!variables.running || variables.requested == '' || variables.requested == variables.plan || !variables.newRequest",
			running("spec.planExecution can request another plan", "after it has ended")),
		rule("!variables.running || variables.requested != '' || variables.requestedBefore == '' || variables.omitted",
			running("spec.planExecution cannot be cleared;", "to abandon the plan, annotate the Instance with "+vocabulary.AbandonPlan.Native+"=' + variables.uid + '")),
		rule("variables.requested == '' || !variables.newRequest || !variables.versionChanged && !variables.parametersChanged",
			"'spec.planExecution can request a plan only if nothing else in the spec changes; make two separate changes'"),
	}
}
