package admission

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The kinds of webhook configurations.
const (
	MutatingKind   = "MutatingWebhookConfiguration"
	ValidatingKind = "ValidatingWebhookConfiguration"
)

// Registration says how webhooks are made known to the API server.
type Registration struct {
	// Metadata is that of the configurations. One that mutates and one that
	// validates may have the same name.
	Metadata metav1.ObjectMeta
	// Client says where the API server calls. It names no path: the manager sets the one of
	// each webhook, with the key that shows who calls. So that no tool that applies
	// the configuration again takes the key away, or quarrels with the manager about it.
	Client admissionregistrationv1.WebhookClientConfig
	// Namespaces are those whose objects count, all if empty.
	Namespaces []string
}

// ByService calls the manager's Service in a namespace.
func ByService(namespace string) admissionregistrationv1.WebhookClientConfig {
	port := int32(443)
	return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
		Namespace: namespace, Name: ServiceName, Port: &port,
	}}
}

// ByURL calls a server outside of the cluster, whose URL has no path.
func ByURL(url string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{URL: &url}
}

// Configurations are the webhook configurations for some webhooks: one for
// those that mutate and one for the others, as far as there are any.
func (r Registration) Configurations(webhooks []Webhook) []client.Object {
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{TypeMeta: typeOf(MutatingKind), ObjectMeta: *r.Metadata.DeepCopy()}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{TypeMeta: typeOf(ValidatingKind), ObjectMeta: *r.Metadata.DeepCopy()}
	for _, w := range webhooks {
		w = w.registered()
		if w.Mutates() {
			mutating.Webhooks = append(mutating.Webhooks, r.mutating(w))
		} else {
			validating.Webhooks = append(validating.Webhooks, r.validating(w))
		}
	}
	var objects []client.Object
	if len(mutating.Webhooks) > 0 {
		objects = append(objects, mutating)
	}
	if len(validating.Webhooks) > 0 {
		objects = append(objects, validating)
	}
	return objects
}

func typeOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: kind}
}

func (r Registration) mutating(w Webhook) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name: w.Name, ClientConfig: *r.Client.DeepCopy(), Rules: w.Rules, MatchConditions: w.MatchConditions,
		FailurePolicy: &w.FailurePolicy, TimeoutSeconds: &w.TimeoutSeconds, ReinvocationPolicy: w.ReinvocationPolicy,
		NamespaceSelector: r.within(w.NamespaceSelector), ObjectSelector: w.ObjectSelector,
		SideEffects: w.sideEffects(), AdmissionReviewVersions: []string{"v1"},
	}
}

func (r Registration) validating(w Webhook) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name: w.Name, ClientConfig: *r.Client.DeepCopy(), Rules: w.Rules, MatchConditions: w.MatchConditions,
		FailurePolicy: &w.FailurePolicy, TimeoutSeconds: &w.TimeoutSeconds,
		NamespaceSelector: r.within(w.NamespaceSelector), ObjectSelector: w.ObjectSelector,
		SideEffects: w.sideEffects(), AdmissionReviewVersions: []string{"v1"},
	}
}

func (w Webhook) sideEffects() *admissionregistrationv1.SideEffectClass {
	class := w.SideEffects
	if class == "" {
		class = admissionregistrationv1.SideEffectClassNone
	}
	return &class
}

func (r Registration) within(selector *metav1.LabelSelector) *metav1.LabelSelector {
	if len(r.Namespaces) == 0 {
		return selector
	}
	return Within(selector, r.Namespaces)
}

// Within narrows a selector of namespaces to those with these names.
func Within(selector *metav1.LabelSelector, namespaces []string) *metav1.LabelSelector {
	narrowed := &metav1.LabelSelector{}
	if selector != nil {
		narrowed = selector.DeepCopy()
	}
	narrowed.MatchExpressions = append(narrowed.MatchExpressions, metav1.LabelSelectorRequirement{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: namespaces,
	})
	return narrowed
}

// GuardName is the name under which a policy and its binding are installed for the manager
// in a namespace.
func GuardName(namespace, policy string) string { return namespace + "." + policy }
