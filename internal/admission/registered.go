package admission

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Registered is a webhook configuration of either kind, as an API server has it.
type Registered struct {
	client.Object

	// Kind is MutatingKind or ValidatingKind.
	Kind string
	// Hooks are its webhooks, in their order.
	Hooks []Hook
}

// AsksFor is true if the labels of a configuration ask for the CA of the manager in a namespace.
func (r *Registered) AsksFor(namespace string) bool {
	return vocabulary.InjectCA.Get(r.GetLabels()) == "true" && vocabulary.ServedFrom.Get(r.GetLabels()) == namespace
}

// Hook is a webhook of a configuration.
type Hook struct {
	Name   string
	Client admissionregistrationv1.WebhookClientConfig
	// FailurePolicy is what becomes of a request that it does not answer; the default is Fail.
	FailurePolicy admissionregistrationv1.FailurePolicyType
}

// ListRegistered lists the webhook configurations, those that mutate first.
func ListRegistered(ctx context.Context, reader client.Reader, options ...client.ListOption) ([]Registered, error) {
	var (
		mutating   admissionregistrationv1.MutatingWebhookConfigurationList
		validating admissionregistrationv1.ValidatingWebhookConfigurationList
		all        []Registered
	)
	if err := reader.List(ctx, &mutating, options...); err != nil {
		return nil, fmt.Errorf("list %ss: %w", MutatingKind, err)
	}
	if err := reader.List(ctx, &validating, options...); err != nil {
		return nil, fmt.Errorf("list %ss: %w", ValidatingKind, err)
	}
	for i := range mutating.Items {
		c := Registered{Object: &mutating.Items[i], Kind: MutatingKind}
		for n := range mutating.Items[i].Webhooks {
			w := &mutating.Items[i].Webhooks[n]
			c.Hooks = append(c.Hooks, hookOf(w.Name, w.ClientConfig, w.FailurePolicy))
		}
		all = append(all, c)
	}
	for i := range validating.Items {
		c := Registered{Object: &validating.Items[i], Kind: ValidatingKind}
		for n := range validating.Items[i].Webhooks {
			w := &validating.Items[i].Webhooks[n]
			c.Hooks = append(c.Hooks, hookOf(w.Name, w.ClientConfig, w.FailurePolicy))
		}
		all = append(all, c)
	}
	return all, nil
}

func hookOf(name string, c admissionregistrationv1.WebhookClientConfig, policy *admissionregistrationv1.FailurePolicyType) Hook {
	h := Hook{Name: name, Client: c, FailurePolicy: admissionregistrationv1.Fail}
	if policy != nil {
		h.FailurePolicy = *policy
	}
	return h
}
