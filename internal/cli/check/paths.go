package check

import (
	"context"
	"fmt"
	"path"
	"strings"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/admission/serve"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// checkPaths looks for webhooks that lead to this installation without a key in the path, so
// that the manager does not know who asks.
func (i *installation) checkPaths(ctx context.Context, c client.Client) []finding {
	all, err := admission.ListRegistered(ctx, c)
	if err != nil {
		return []finding{unread("the paths of webhooks", err)}
	}
	served := i.servedPaths()
	var findings []finding
	for n := range all {
		findings = append(findings, i.withoutKey(&all[n], served)...)
	}
	return findings
}

// withoutKey names the webhooks of a configuration that lack the key.
func (i *installation) withoutKey(r *admission.Registered, served map[string]bool) []finding {
	own := manifests.IsInstalled(r, i.deployment.Namespace)
	if !own && !r.AsksFor(i.deployment.Namespace) {
		return nil
	}
	var names []string
	for n := range r.Hooks {
		at := ""
		if s := r.Hooks[n].Client.Service; s != nil {
			at = ptr.Deref(s.Path, "")
		}
		if !serve.IsKey(path.Base(at)) && (own || served[at]) {
			names = append(names, r.Hooks[n].Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	what := fmt.Sprintf("%s/%s has no key in the path of %s, so that the manager cannot tell an API server from others and refuses what it would have to look up",
		strings.ToLower(r.Kind), r.GetName(), strings.Join(names, ", "))
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
