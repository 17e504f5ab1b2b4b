package check

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/admission/leftout"
	"github.com/spillway-dev/spillway/internal/admission/serve"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

const reinstall = "spillway install with the options of this installation fixes it"

// checkKinds compares the CustomResourceDefinitions with those of this version, by what an
// apply would change.
func (i *installation) checkKinds(ctx context.Context, c client.Client) []finding {
	kinds, err := manifests.KindsOf(i.args.Rings())
	if err != nil {
		return []finding{unread("kinds", err)}
	}
	var findings []finding
	for _, crd := range kinds {
		if f := checkKind(ctx, c, crd); f != nil {
			findings = append(findings, *f)
		}
	}
	if len(findings) == 0 && len(kinds) > 0 {
		findings = append(findings, finding{OK: true, What: fmt.Sprintf("%d kinds are those of version %s", len(kinds), command.CurrentVersion())})
	}
	return findings
}

// checkKind is nil for a kind that is as this version installs it.
func checkKind(ctx context.Context, c client.Client, crd *unstructured.Unstructured) *finding {
	what := "kind " + crd.GetName()
	live := kube.Metadata(crd.GroupVersionKind())
	switch err := c.Get(ctx, client.ObjectKeyFromObject(crd), live); {
	case apierrors.IsNotFound(err):
		return &finding{What: what + " not found", Action: reinstall, problem: "kind not found"}
	case err != nil:
		f := unread(what, err)
		return &f
	}
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(crd), client.FieldOwner(kube.FieldOwner), client.ForceOwnership, client.DryRunAll)
	switch {
	case apierrors.IsForbidden(err):
		return nil // who may not install sees that it exists
	case err != nil:
		f := unread(what, err)
		return &f
	case crd.GetGeneration() != live.GetGeneration():
		return &finding{Advice: true, problem: "other kind", What: what + " is not that of version " + command.CurrentVersion(), Action: reinstall + ", or use the command of the version that is installed"}
	}
	return nil
}

// checkAdmission looks for the policies and webhooks of the installation, and how long the
// certificate is valid.
func (i *installation) checkAdmission(ctx context.Context, c client.Client, now time.Time) []finding {
	namespace := i.deployment.Namespace
	o := manifests.Default(i.args.Rings()...)
	o.Namespace, o.Values.WatchNamespaces = namespace, i.args.Namespaces()
	o.Values.SetPins(i.args.PinNamespaces())
	o.Values.PinBy = i.args.PinBy()
	o.Values.Webhooks.Enabled, o.Values.CRDs = i.args.Value("enable-webhooks", "false") == "true", false
	wanted, err := manifests.Objects(o)
	if err != nil {
		return []finding{unread("policies and webhooks", err)}
	}
	findings, found := i.missing(ctx, c, wanted)
	if found > 0 {
		findings = append(findings, finding{OK: true, What: fmt.Sprintf("%d policies, webhooks and bindings", found)})
	}
	if i.args.Value("enable-webhooks", "false") == "true" {
		findings = append(findings, checkCertificate(ctx, c, namespace, now)...)
		findings = append(findings, i.checkPaths(ctx, c)...)
		findings = append(findings, checkLeftOut(ctx, c, namespace, i.args.Rings())...)
	}
	return findings
}

// checkLeftOut names the webhook configurations that ask for a CA, and get none from this
// manager, because its permissions or its options leave them out.
func checkLeftOut(ctx context.Context, c client.Client, namespace string, rings []string) []finding {
	own := make([]string, len(rings))
	for i, ring := range rings {
		own[i] = admission.ConfigurationName(namespace, ring)
	}
	found, err := leftout.Find(ctx, c, namespace, own)
	if err != nil {
		return []finding{unread("webhook configurations of others", err)}
	}
	findings := make([]finding, len(found))
	for i := range found {
		findings[i] = finding{What: found[i].What(), Action: found[i].Action(), Advice: !found[i].Refuses}
	}
	return findings
}

// missing are the policies and webhooks that are not found; found counts the others.
func (i *installation) missing(ctx context.Context, c client.Client, wanted []*unstructured.Unstructured) (findings []finding, found int) {
	for _, obj := range wanted {
		kind := obj.GroupVersionKind()
		if !slices.Contains(manifests.AdmissionKinds(), kind) {
			continue
		}
		what := strings.ToLower(kind.Kind) + "/" + obj.GetName()
		live := kube.Metadata(kind)
		switch err := c.Get(ctx, client.ObjectKeyFromObject(obj), live); {
		case apierrors.IsNotFound(err):
			f := finding{What: what + " not found", Action: reinstall, problem: kind.Kind + " not found"}
			// Who installed without the policies about the manager's identity meant it.
			f.Advice = strings.HasPrefix(kind.Kind, "ValidatingAdmissionPolicy")
			findings = append(findings, f)
		case err != nil:
			return append(findings, unread(what, err)), found
		default:
			found++
		}
	}
	return findings, found
}

// expiresSoon is how long before its end a certificate should have been renewed.
const expiresSoon = 7 * 24 * time.Hour

// checkCertificate says how long the API server trusts the webhooks: by the certificate, or,
// if the Secret may not be read, by the authority in the configurations.
func checkCertificate(ctx context.Context, c client.Client, namespace string, now time.Time) []finding {
	registered, err := admission.ListRegistered(ctx, c, client.MatchingLabels(manifests.SelectInstalled(namespace)))
	if err != nil {
		return []finding{unread("certificates", err)}
	}
	var findings []finding
	for n := range registered {
		i := slices.IndexFunc(registered[n].Hooks, func(h admission.Hook) bool { return len(h.Client.CABundle) == 0 })
		if i >= 0 {
			findings = append(findings, finding{problem: "no authority", What: fmt.Sprintf("webhook %s has no certificate authority: the API server cannot ask the manager", registered[n].Hooks[i].Name), Action: "check that a replica of the manager is ready"})
		}
	}
	secret := &corev1.Secret{}
	err = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: admission.SecretName}, secret)
	switch raw := secret.Data[corev1.TLSCertKey]; {
	case client.IgnoreNotFound(err) != nil:
		return append(findings, unread("the certificate of the webhooks", err))
	case len(raw) == 0: // it is installed empty
		return append(findings, finding{Advice: true, What: "the webhooks have no certificate yet: none in Secret " + admission.SecretName, Action: "check that a replica of the manager leads"})
	default:
		return append(findings, certificate(raw, now))
	}
}

// certificate says how old a certificate is, and how long it is valid.
func certificate(raw []byte, now time.Time) finding {
	block, _ := pem.Decode(raw)
	if block == nil {
		return finding{What: "the certificate of the webhooks is none", Action: "check that a replica of the manager is ready"}
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return finding{What: "the certificate of the webhooks cannot be read: " + err.Error(), Action: "empty it, and the manager makes a new one: kubectl patch secret " + admission.SecretName + " --type=json -p '[{\"op\":\"remove\",\"path\":\"/data\"}]'"}
	}
	f := finding{OK: cert.NotAfter.Sub(now) > expiresSoon, What: fmt.Sprintf("the certificate of the webhooks is %d days old, and valid until %s",
		int(now.Sub(cert.NotBefore).Hours()/24), cert.NotAfter.UTC().Format(time.DateOnly))}
	if !f.OK {
		f.Advice, f.Action = now.Before(cert.NotAfter), "it should have been renewed: check that a replica of the manager is ready"
	}
	return f
}

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
