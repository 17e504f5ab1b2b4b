package admission

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Policy is one that the API server evaluates itself. What it cannot evaluate is refused, unless
// the spec says otherwise.
func Policy(name string, spec admissionregistrationv1.ValidatingAdmissionPolicySpec) *admissionregistrationv1.ValidatingAdmissionPolicy {
	if spec.FailurePolicy == nil {
		spec.FailurePolicy = new(admissionregistrationv1.Fail)
	}
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		TypeMeta: policyKind("ValidatingAdmissionPolicy"), ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec,
	}
}

// Binding puts a policy into force, which is in force nowhere without one.
func Binding(name, policy string, action admissionregistrationv1.ValidationAction) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		TypeMeta: policyKind("ValidatingAdmissionPolicyBinding"), ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy, ValidationActions: []admissionregistrationv1.ValidationAction{action},
		},
	}
}

// On are the requests of one operation on some resources of a group.
func On(operation admissionregistrationv1.OperationType, group, version string, resources ...string) *admissionregistrationv1.MatchResources {
	rule := admissionregistrationv1.NamedRuleWithOperations{}
	rule.Operations = []admissionregistrationv1.OperationType{operation}
	rule.APIGroups, rule.APIVersions, rule.Resources = []string{group}, []string{version}, resources
	return &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{rule}}
}

func policyKind(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: kind}
}
