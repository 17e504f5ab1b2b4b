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

// Find lists all webhook configurations, and returns those that ask for a CA and have another
// than the configurations of the manager in a namespace, of which own are the names. While
// these have none yet, nothing is known.
func Find(ctx context.Context, reader client.Reader, namespace string, own []string) ([]Configuration, error) {
	all, err := admission.ListRegistered(ctx, reader)
	if err != nil {
		return nil, fmt.Errorf("look for webhook configurations: %w", err)
	}
	isOwn := func(c admission.Registered) bool { return slices.Contains(own, c.GetName()) }
	var ours [][]byte
	for i := range all {
		for n := range all[i].Hooks {
			if ca := all[i].Hooks[n].Client.CABundle; len(ca) > 0 && isOwn(all[i]) {
				ours = append(ours, ca)
			}
		}
	}
	if len(ours) == 0 {
		return nil, nil
	}
	var found []Configuration
	for _, c := range slices.DeleteFunc(all, isOwn) {
		if out, ok := leftOut(&c, ours); ok {
			out.manager = namespace
			found = append(found, out)
		}
	}
	slices.SortFunc(found, func(a, b Configuration) int { return strings.Compare(a.Kind+a.Name, b.Kind+b.Name) })
	return found, nil
}

// leftOut is false of a configuration that asks for no CA, or has ours.
func leftOut(r *admission.Registered, ours [][]byte) (c Configuration, _ bool) {
	labels := r.GetLabels()
	if vocabulary.InjectCA.Get(labels) != "true" || r.GetDeletionTimestamp() != nil {
		return c, false
	}
	others := slices.DeleteFunc(r.Hooks, func(h admission.Hook) bool {
		return slices.ContainsFunc(ours, func(ca []byte) bool { return bytes.Equal(ca, h.Client.CABundle) })
	})
	c = Configuration{Kind: r.Kind, Name: r.GetName(), labeled: vocabulary.ServedFrom.Get(labels)}
	c.Refuses = slices.ContainsFunc(others, func(h admission.Hook) bool { return h.FailurePolicy == admissionregistrationv1.Fail })
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
