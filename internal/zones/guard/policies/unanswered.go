package policies

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// PodEviction is the name of a webhook, and of the policy that asks for its answer.
const PodEviction = "pod-eviction.zones.spillway.dev"

// Unanswered is a policy that refuses an eviction that no webhook has answered, in a
// namespace that has a budget: the budgets are its parameters. So a manager that is
// down keeps no other client from draining nodes.
//
// A Scale cannot be guarded like that: what a webhook adds to it is gone before
// policies see it.
//
// Failures are ignored: while the kind of the budgets is not installed there are none,
// and evictions go on.
func Unanswered() []client.Object {
	ignore, allow, forbidden := admissionregistrationv1.Ignore, admissionregistrationv1.AllowAction, metav1.StatusReasonForbidden
	return []client.Object{
		admission.Policy(PodEviction, admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    &ignore,
			ParamKind:        &admissionregistrationv1.ParamKind{APIVersion: zonesv1.GroupVersion.String(), Kind: "ZoneAwarePodDisruptionBudget"},
			MatchConstraints: on(Rules(admissionregistrationv1.Create, "", "v1", "pods/eviction")),
			Validations: []admissionregistrationv1.Validation{{
				Expression: "'" + vocabulary.Admitted + "' in object.metadata.?annotations.orValue({})", Reason: &forbidden,
				MessageExpression: "'Pod ' + request.name + ' is in a namespace with ZoneAwarePodDisruptionBudget ' + params.metadata.name + " +
					"', and the webhook of Spillway does not answer; start its manager, or drain with --disable-eviction, which no budget guards'",
			}},
		}),
		binding(PodEviction, PodEviction, &admissionregistrationv1.ParamRef{Selector: &metav1.LabelSelector{}, ParameterNotFoundAction: &allow}),
	}
}
