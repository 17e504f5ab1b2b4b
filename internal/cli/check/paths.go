package check

import (
	"context"
	"fmt"
	"path"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	selection "k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission/serve"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// checkPaths looks for webhooks that lead to this installation without a key in the path, so
// that the manager does not know who asks.
func (i *installation) checkPaths(ctx context.Context, c client.Client) []finding {
	var (
		mutating   admissionregistrationv1.MutatingWebhookConfigurationList
		validating admissionregistrationv1.ValidatingWebhookConfigurationList
		findings   []finding
	)
	for _, list := range []client.ObjectList{&mutating, &validating} {
		if err := c.List(ctx, list); err != nil {
			return []finding{unread("the paths of webhooks", err)}
		}
	}
	for n := range mutating.Items {
		var called []called
		for _, w := range mutating.Items[n].Webhooks {
			called = append(called, calledBy(w.Name, w.ClientConfig))
		}
		findings = append(findings, i.withoutKey("mutatingwebhookconfiguration", &mutating.Items[n], called)...)
	}
	for n := range validating.Items {
		var called []called
		for _, w := range validating.Items[n].Webhooks {
			called = append(called, calledBy(w.Name, w.ClientConfig))
		}
		findings = append(findings, i.withoutKey("validatingwebhookconfiguration", &validating.Items[n], called)...)
	}
	return findings
}

// called is a webhook and where it is called.
type called struct{ name, path string }

func calledBy(name string, c admissionregistrationv1.WebhookClientConfig) called {
	w := called{name: name}
	if c.Service != nil && c.Service.Path != nil {
		w.path = *c.Service.Path
	}
	return w
}

// withoutKey names the webhooks of a configuration that lack the key.
func (i *installation) withoutKey(kind string, obj client.Object, webhooks []called) []finding {
	namespace, labels := i.deployment.Namespace, obj.GetLabels()
	own := selection.SelectorFromSet(manifests.SelectInstalled(namespace)).Matches(selection.Set(labels))
	if !own && (vocabulary.InjectCA.Get(labels) != "true" || vocabulary.ServedFrom.Get(labels) != namespace) {
		return nil
	}
	served := i.servedPaths()
	var names []string
	for _, w := range webhooks {
		if !serve.IsKey(path.Base(w.path)) && (own || served[w.path]) {
			names = append(names, w.name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	what := fmt.Sprintf("%s/%s has no key in the path of %s, so that the manager cannot tell an API server from others and refuses what it would have to look up",
		kind, obj.GetName(), strings.Join(names, ", "))
	action := "check that a replica of the manager is ready"
	if !own {
		action = "name it in --webhook-configurations of spillway install, and have the tool that applies it ignore /webhooks/*/clientConfig/service/path"
	}
	return []finding{{What: what, Action: action}}
}

// servedPaths are those at which the manager answers.
func (i *installation) servedPaths() map[string]bool {
	served := map[string]bool{}
	for _, ring := range i.args.Rings() {
		for _, w := range (manager.Options{}).Declarations(ring).Webhooks {
			for _, at := range w.Served() {
				served[at] = true
			}
		}
	}
	return served
}
