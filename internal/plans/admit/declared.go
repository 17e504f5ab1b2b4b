package admit

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

const (
	webhookPath = "/validate-kudo-dev-v1beta1-instance"
	// webhookTimeout is how long, in seconds, the API server waits for an answer.
	webhookTimeout = 5
)

// Declared is the admission that the ring needs in the cluster: the guard, for what an
// Instance alone shows, and a webhook, for what needs the OperatorVersion.
func Declared() admission.Declared {
	return admission.Declared{Policies: Policies(), Webhooks: []admission.Webhook{declared()}}
}

// declared is the webhook. If no manager answers, the API server admits the change, and
// the controller, which decides in any case, reports the problem.
func declared() admission.Webhook {
	return admission.Webhook{
		Name: "instances.plans.spillway.dev", Path: webhookPath,
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{v1beta1.GroupVersion.Group}, APIVersions: []string{v1beta1.GroupVersion.Version}, Resources: []string{"instances"},
			},
		}},
		MatchConditions: []admissionregistrationv1.MatchCondition{
			{Name: "is-not-deleted", Expression: "!has(object.metadata.deletionTimestamp)"},
			{Name: "wants-a-change", Expression: "request.operation == 'CREATE' || " + targetChanged() + " || " + anotherPlanRequested() + " || " + gatesChanged()},
		},
		FailurePolicy:  admissionregistrationv1.Ignore,
		TimeoutSeconds: webhookTimeout,
	}
}

// targetChanged is true, in CEL, of an update that changes what is wanted. The uid and
// the removal of a request, which the ring writes, do not count.
func targetChanged() string {
	return changedInCEL("spec.operatorVersion", "{}") + " || " + changedInCEL("spec.parameters", "{}")
}

func anotherPlanRequested() string {
	const plan = "spec.planExecution.planName"
	return "(" + fieldInCEL("object", plan, "''") + ") != '' && " + changedInCEL(plan, "''")
}

// gatesChanged is true, in CEL, of an update that names other gates.
func gatesChanged() string {
	gates := func(object string) string {
		return "(has(" + object + ".metadata.annotations) && '" + vocabulary.PlanGates.Native + "' in " + object + ".metadata.annotations ? " +
			object + ".metadata.annotations['" + vocabulary.PlanGates.Native + "'] : '')"
	}
	return gates("object") + " != " + gates("oldObject")
}

// Routes answer the ring's webhook, for these namespaces, all if there are none.
func Routes(mgr ctrl.Manager, namespaces []string) []admission.Route {
	return []admission.Route{{Path: webhookPath, Handler: &webhook{namespaces: namespaces, live: mgr.GetAPIReader()}}}
}
