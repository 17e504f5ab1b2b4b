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

// Unanswered are the policies that refuse an eviction that no webhook has answered, in a
// namespace that has a budget. So a manager that is down keeps no other client from draining
// nodes.
//
// Package preparation labels these namespaces; in them nothing else is asked for, and a failure
// refuses. In the others the budgets are parameters, and failures are ignored: while the kind of
// the budgets is not installed, or an API server that has just started does not know it, evictions
// go on there.
//
// A Scale cannot be guarded like that: what a webhook adds to it is gone before policies see it.
func Unanswered() []client.Object {
	ignore, allow := admissionregistrationv1.Ignore, admissionregistrationv1.AllowAction
	ofBudget := unansweredEviction("' is in a namespace with ZoneAwarePodDisruptionBudget ' + params.metadata.name + '")
	ofBudget.FailurePolicy = &ignore
	ofBudget.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: zonesv1.GroupVersion.String(), Kind: "ZoneAwarePodDisruptionBudget"}
	label := vocabulary.GuardsEvictions
	ofLabel := unansweredEviction("' is in a namespace with the label " + label.Native)
	params := &admissionregistrationv1.ParamRef{Selector: &metav1.LabelSelector{}, ParameterNotFoundAction: &allow}
	const labeledName = "labeled." + PodEviction
	return []client.Object{
		admission.Policy(PodEviction, ofBudget), binding(PodEviction, PodEviction, params, labeled(label, metav1.LabelSelectorOpNotIn)),
		admission.Policy(labeledName, ofLabel), binding(labeledName, labeledName, nil, labeled(label, metav1.LabelSelectorOpIn)),
	}
}

// unansweredEviction refuses an eviction without the mark of the webhook; why is in CEL.
func unansweredEviction(why string) admissionregistrationv1.ValidatingAdmissionPolicySpec {
	forbidden := metav1.StatusReasonForbidden
	return admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: on(Rules(admissionregistrationv1.Create, "", "v1", "pods/eviction")),
		Validations: []admissionregistrationv1.Validation{{
			Expression: "'" + vocabulary.Admitted + "' in object.metadata.?annotations.orValue({})", Reason: &forbidden,
			MessageExpression: "'Pod ' + request.name + " + why +
				", and the webhook of Spillway does not answer; start its manager, or drain with --disable-eviction, which no budget guards'",
		}},
	}
}
