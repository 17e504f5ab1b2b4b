package plans

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/admission"
)

const (
	webhookPath = "/validate-kudo-dev-v1beta1-instance"
	// webhookTimeout is how long, in seconds, the API server waits for an answer.
	webhookTimeout = 5
)

// Declared is what the ring wants the cluster to have: the guard, which judges
// what an Instance alone tells, and a webhook for what needs the OperatorVersion.
func Declared() admission.Declared {
	return admission.Declared{Policies: Policies(), Webhooks: []admission.Webhook{declared()}}
}

// declared is the webhook. If nobody answers, the change is made, and the
// controller, which decides in any case, says what is wrong with it.
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
			{Name: "asks-for-something", Expression: "request.operation == 'CREATE' || " + targetChanged() + " || " + anotherPlanAsked()},
		},
		FailurePolicy:  admissionregistrationv1.Ignore,
		TimeoutSeconds: webhookTimeout,
	}
}

// targetChanged is true, in CEL, of an update after which something else is
// wanted. The uid and the removal of a wish, which the ring writes, are no such.
func targetChanged() string {
	return changedInCEL("spec.operatorVersion", "{}") + " || " + changedInCEL("spec.parameters", "{}")
}

func anotherPlanAsked() string {
	const plan = "spec.planExecution.planName"
	return "(" + fieldInCEL("object", plan, "''") + ") != '' && " + changedInCEL(plan, "''")
}

// Routes answer the ring's webhook.
func Routes(mgr ctrl.Manager, o Options) []admission.Route {
	return []admission.Route{{Path: webhookPath, Handler: &admitter{options: o, live: mgr.GetAPIReader()}}}
}
