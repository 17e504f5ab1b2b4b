// Package leftout finds the webhook configurations that ask for the CA of a manager and do
// not have that of this one: those that --webhook-configurations leaves out, and those that
// name the namespace of rollout-operator, which has injected its own.
//
// While such a configuration refuses what no webhook answers, as those of Mimir's chart do,
// each write that it is about is refused once rollout-operator is gone.
package leftout

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Configuration is a webhook configuration that was left out.
type Configuration struct {
	Kind, Name string
	// Refuses is true if the API server refuses what no webhook of it answers.
	Refuses bool
	// manager is the namespace of the manager that looks, and labeled the one that the
	// labels of the configuration name.
	manager, labeled string
}

// hook is what matters of a webhook.
type hook struct {
	ca      []byte
	refuses bool
}

// Find lists all webhook configurations, and returns those that ask for a CA and have another
// than the configurations of the manager in a namespace, of which own are the names. While
// these have none yet, nothing is known.
func Find(ctx context.Context, reader client.Reader, namespace string, own []string) ([]Configuration, error) {
	var (
		mutating   admissionregistrationv1.MutatingWebhookConfigurationList
		validating admissionregistrationv1.ValidatingWebhookConfigurationList
		found      []Configuration
	)
	for _, list := range []client.ObjectList{&mutating, &validating} {
		if err := reader.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list webhook configurations: %w", err)
		}
	}
	visit := func(each func(kind string, obj client.Object, hooks []hook)) {
		for i := range mutating.Items {
			each(admission.MutatingKind, &mutating.Items[i], hooksOfMutating(&mutating.Items[i]))
		}
		for i := range validating.Items {
			each(admission.ValidatingKind, &validating.Items[i], hooksOfValidating(&validating.Items[i]))
		}
	}
	ours := bundlesOf(own, visit)
	if len(ours) == 0 {
		return nil, nil
	}
	visit(func(kind string, obj client.Object, hooks []hook) {
		if c, ok := leftOut(kind, obj, hooks, ours); ok && !slices.Contains(own, obj.GetName()) {
			c.manager = namespace
			found = append(found, c)
		}
	})
	slices.SortFunc(found, func(a, b Configuration) int { return strings.Compare(a.Kind+a.Name, b.Kind+b.Name) })
	return found, nil
}

// bundlesOf are the CAs of the configurations with some names.
func bundlesOf(own []string, visit func(func(kind string, obj client.Object, hooks []hook))) (ours [][]byte) {
	visit(func(_ string, obj client.Object, hooks []hook) {
		if slices.Contains(own, obj.GetName()) {
			for _, h := range hooks {
				ours = append(ours, h.ca)
			}
		}
	})
	return slices.DeleteFunc(ours, func(ca []byte) bool { return len(ca) == 0 })
}

// leftOut is false of a configuration that asks for no CA, or has ours.
func leftOut(kind string, obj client.Object, hooks []hook, ours [][]byte) (c Configuration, _ bool) {
	labels := obj.GetLabels()
	if vocabulary.InjectCA.Get(labels) != "true" || obj.GetDeletionTimestamp() != nil {
		return c, false
	}
	others := slices.DeleteFunc(hooks, func(h hook) bool {
		return slices.ContainsFunc(ours, func(ca []byte) bool { return bytes.Equal(ca, h.ca) })
	})
	c = Configuration{Kind: kind, Name: obj.GetName(), labeled: vocabulary.ServedFrom.Get(labels)}
	c.Refuses = slices.ContainsFunc(others, func(h hook) bool { return h.refuses })
	return c, len(others) > 0
}

// What says what is wrong.
func (c *Configuration) What() string {
	text := fmt.Sprintf("%s/%s asks for a CA and does not have that of this manager", strings.ToLower(c.Kind), c.Name)
	if c.Refuses {
		text += ": unless another program answers it, the API server refuses each write that it is about"
	}
	return text
}

// Action is what fixes it: the manager may inject its CA, or the configuration goes,
// because those of the installation guard the same.
func (c *Configuration) Action() string {
	command := fmt.Sprintf("kubectl delete %s %s, as the webhooks of this installation guard the same; or keep it: "+
		"run spillway install with the options of this installation and --webhook-configurations=%s", strings.ToLower(c.Kind), c.Name, c.Name)
	if c.labeled != c.manager {
		command += fmt.Sprintf(", and kubectl label %s %s --overwrite %s=%s", strings.ToLower(c.Kind), c.Name, vocabulary.ServedFrom.Names()[1], c.manager)
	}
	return command
}

func hooksOfMutating(c *admissionregistrationv1.MutatingWebhookConfiguration) []hook {
	hooks := make([]hook, len(c.Webhooks))
	for i := range c.Webhooks {
		hooks[i] = hookOf(&c.Webhooks[i].ClientConfig, c.Webhooks[i].FailurePolicy)
	}
	return hooks
}

func hooksOfValidating(c *admissionregistrationv1.ValidatingWebhookConfiguration) []hook {
	hooks := make([]hook, len(c.Webhooks))
	for i := range c.Webhooks {
		hooks[i] = hookOf(&c.Webhooks[i].ClientConfig, c.Webhooks[i].FailurePolicy)
	}
	return hooks
}

func hookOf(c *admissionregistrationv1.WebhookClientConfig, policy *admissionregistrationv1.FailurePolicyType) hook {
	return hook{ca: c.CABundle, refuses: policy == nil || *policy == admissionregistrationv1.Fail}
}
