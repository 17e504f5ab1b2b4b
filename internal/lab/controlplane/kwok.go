package controlplane

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kwokUser is who kwok is to the API server.
const kwokUser = "kwok"

func (cp *ControlPlane) kwokToken() string { return cp.token + "-" + kwokUser }

func (cp *ControlPlane) kwokKubeconfig() string { return cp.path("kwok.kubeconfig") }

// limitKwok denies kwok to delete a Pod that no other client has deleted. A kubelet deletes by
// UID, but kwok by name: what it had decided about one Pod would else hit the next one of that
// name. That happens on a busy machine when the Pod is gone before its stage has been chosen.
// The API server asks the policy about the very object that it deletes.
func (cp *ControlPlane) limitKwok(ctx context.Context) error {
	c, err := cp.Clientset()
	if err != nil {
		return err
	}
	policies, bindings := c.AdmissionregistrationV1().ValidatingAdmissionPolicies(), c.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	if _, err := policies.Create(ctx, kwokPolicy(), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("limit kwok: %w", err)
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: kwokPolicy().ObjectMeta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: kwokPolicy().Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	if _, err := bindings.Create(ctx, binding, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("limit kwok: %w", err)
	}
	return nil
}

func kwokPolicy() *admissionv1.ValidatingAdmissionPolicy {
	forbidden := metav1.StatusReasonForbidden
	pods := admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Delete},
		Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
	}
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "kwok-ends-deleted-pods-only"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: pods}}},
			MatchConditions:  []admissionv1.MatchCondition{{Name: "by-kwok", Expression: "request.userInfo.username == '" + kwokUser + "'"}},
			Validations: []admissionv1.Validation{{
				Expression: "has(oldObject.metadata.deletionTimestamp)", Reason: &forbidden, Message: "kwok ends only Pods that are being deleted",
			}},
		},
	}
}
