package policies

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// PrepareScale is the name of a webhook, and of the policy for where it is not asked.
const PrepareScale = "prepare-scale.zones.spillway.dev"

// Asked selects the namespaces in which the webhook is asked about Scales. While no manager
// answers, no Scale is lowered in them; so those of Kubernetes itself are not among them.
func Asked(namespaces []string) *metav1.LabelSelector {
	is := metav1.LabelSelectorRequirement{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: namespaces}
	if len(namespaces) == 0 {
		is.Operator, is.Values = metav1.LabelSelectorOpNotIn, []string{metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease}
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{is}}
}

// Unasked is a policy that refuses, where the webhook is not asked, to lower the Scale of a
// StatefulSet whose Pods must be told: those StatefulSets are its parameters. No other Scale
// is concerned.
func Unasked(asked *metav1.LabelSelector) []client.Object {
	allow, forbidden := admissionregistrationv1.AllowAction, metav1.StatusReasonForbidden
	objects := []client.Object{policy(PrepareScale, admissionregistrationv1.ValidatingAdmissionPolicySpec{
		ParamKind:        &admissionregistrationv1.ParamKind{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "StatefulSet"},
		MatchConstraints: on(Rules(admissionregistrationv1.Update, appsv1.GroupName, "v1", "statefulsets/scale")),
		MatchConditions:  []admissionregistrationv1.MatchCondition{{Name: "lowers-replicas", Expression: LowersInCEL}},
		Validations: []admissionregistrationv1.Validation{{
			Expression: "params.metadata.name != request.name", Reason: &forbidden,
			MessageExpression: "'the Pods of StatefulSet ' + request.name + ' must be told before they go, and the webhook that tells them is not called in namespace ' + request.namespace + " +
				"'; name it in --prepare-namespaces of spillway install, or lower spec.replicas of the StatefulSet'",
		}},
	})}
	names := []string{PrepareScale, "alias." + PrepareScale}
	for i, label := range vocabulary.PrepareDownscale.Names() {
		b := binding(names[i], PrepareScale, &admissionregistrationv1.ParamRef{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "true"}}, ParameterNotFoundAction: &allow,
		})
		if typed, ok := b.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding); ok {
			typed.Spec.MatchResources = &admissionregistrationv1.MatchResources{NamespaceSelector: inverse(asked)}
		}
		objects = append(objects, b)
	}
	return objects
}

// inverse selects the other namespaces.
func inverse(selector *metav1.LabelSelector) *metav1.LabelSelector {
	other := selector.DeepCopy()
	is := &other.MatchExpressions[0]
	if is.Operator == metav1.LabelSelectorOpIn {
		is.Operator = metav1.LabelSelectorOpNotIn
	} else {
		is.Operator = metav1.LabelSelectorOpIn
	}
	return other
}
