package policies

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// PrepareScale is the name of a webhook, and of the policy for where it is not asked.
const PrepareScale = "prepare-scale.zones.spillway.dev"

// Asked selects the namespaces in which the webhook is asked about Scales: package preparation
// labels them. While no manager answers, no Scale is lowered in them.
func Asked() *metav1.LabelSelector {
	return labeled(vocabulary.PreparesScales, metav1.LabelSelectorOpIn)
}

// labeled selects the namespaces in which a label is set, or is not.
func labeled(key vocabulary.Key, operator metav1.LabelSelectorOperator) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key.Native, Operator: operator, Values: []string{"true"}}}}
}

// Unasked is a policy that refuses, where the webhook is not asked, to lower the Scale of a
// StatefulSet whose Pods must be told: those StatefulSets are its parameters. No other Scale
// is concerned.
//
// It is for the moments before the namespace has its label, and for a manager that is down.
// An API server in which no binding has named StatefulSets as parameters for a second, such
// as between an uninstallation and an installation, does not see any as parameters until it
// is restarted (kubernetes/kubernetes#130887). So it must not be all that there is.
func Unasked() []client.Object {
	allow, forbidden := admissionregistrationv1.AllowAction, metav1.StatusReasonForbidden
	objects := []client.Object{admission.Policy(PrepareScale, admissionregistrationv1.ValidatingAdmissionPolicySpec{
		ParamKind:        &admissionregistrationv1.ParamKind{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "StatefulSet"},
		MatchConstraints: on(Rules(admissionregistrationv1.Update, appsv1.GroupName, "v1", "statefulsets/scale")),
		MatchConditions:  []admissionregistrationv1.MatchCondition{{Name: "lowers-replicas", Expression: LowersInCEL}},
		Validations: []admissionregistrationv1.Validation{{
			Expression: "params.metadata.name != request.name", Reason: &forbidden,
			MessageExpression: "'the Pods of StatefulSet ' + request.name + ' must be told before they go, and the webhook that tells them is not called in namespace ' + request.namespace + " +
				"' yet; label the namespace with " + vocabulary.PreparesScales.Native + "=true, or lower spec.replicas of the StatefulSet'",
		}},
	})}
	names := []string{PrepareScale, "alias." + PrepareScale}
	for i, label := range vocabulary.PrepareDownscale.Names() {
		params := &admissionregistrationv1.ParamRef{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "true"}}, ParameterNotFoundAction: &allow}
		objects = append(objects, binding(names[i], PrepareScale, params, labeled(vocabulary.PreparesScales, metav1.LabelSelectorOpNotIn)))
	}
	return objects
}
