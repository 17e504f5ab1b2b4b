package certificate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// observer does all the reads.
type observer struct {
	options admission.Options
	// secrets has the Secret that we write.
	secrets client.Reader
	// served and registered are as in [observed].
	served     map[string]bool
	registered map[string]string
	// views have the webhook configurations, each in one of them.
	views []client.Reader
}

func (r *observer) observe(ctx context.Context) (observed, error) {
	o := observed{
		now: r.options.Now(), hosts: r.options.Hosts, generated: r.options.Source == admission.Generated,
		served: r.served, registered: r.registered,
	}
	var err error
	if o.secret, err = r.readSecret(ctx); err != nil {
		return observed{}, err
	}
	if o.secret != nil {
		o.material, o.keys = o.secret.Data, parseKeys(o.secret.Data[keyPaths])
	}
	if !o.generated {
		if o.material, err = readFiles(r.options.CertDir); err != nil {
			return observed{}, err
		}
	}
	o.configurations, err = r.readConfigurations(ctx)
	return o, err
}

// readSecret returns nil if there is none.
func (r *observer) readSecret(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := r.secrets.Get(ctx, client.ObjectKey{Namespace: r.options.Namespace, Name: r.options.KeysSecret()}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, fmt.Errorf("read the Secret %s: %w", r.options.KeysSecret(), err)
	}
	return secret, nil
}

// readFiles reads what exists. A file that does not exist is no error: it may be
// created, and until then the check of the material says what is missing.
func readFiles(dir string) (material, error) {
	m := material{}
	for _, name := range []string{keyLeaf, keyLeafKey, keyBundle} {
		raw, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // the folder is the choice of the user who runs the manager
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read the certificate: %w", err)
		}
		m[name] = raw
	}
	return m, nil
}

// readConfigurations returns those that are ours to write, by kind and name.
func (r *observer) readConfigurations(ctx context.Context) ([]configuration, error) {
	var found []configuration
	for _, view := range r.views {
		all, err := admission.ListRegistered(ctx, view, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("read webhook configurations: %w", err)
		}
		for i := range all {
			if concerns(&r.options, &all[i]) {
				found = append(found, configurationOf(&r.options, &all[i]))
			}
		}
	}
	slices.SortFunc(found, func(a, b configuration) int { return strings.Compare(a.kind+a.name, b.kind+b.name) })
	return found, nil
}

// configurationOf leaves the caBundle of our own configurations to cert-manager, if that makes the certificate.
func configurationOf(o *admission.Options, r *admission.Registered) configuration {
	c := configuration{kind: r.Kind, name: r.GetName(), resourceVersion: r.GetResourceVersion(), own: slices.Contains(o.Own, r.GetName())}
	c.bundled = !c.own || o.Source != admission.CertManager
	c.content = fmt.Sprintf("%s/%d", r.GetUID(), r.GetGeneration())
	c.annotated, c.confirmed = r.GetAnnotations() != nil, vocabulary.Injected.Get(r.GetAnnotations())
	for i := range r.Hooks {
		c.hooks = append(c.hooks, hookOf(&r.Hooks[i]))
	}
	return c
}

func hookOf(r *admission.Hook) hook {
	h := hook{name: r.Name, policy: r.FailurePolicy, bundle: r.Client.CABundle}
	if s := r.Client.Service; s != nil {
		h.host, h.path = s.Name+"."+s.Namespace+".svc", ptr.Deref(s.Path, "")
		return h
	}
	h.url = ptr.Deref(r.Client.URL, "")
	if u, err := url.Parse(h.url); err == nil {
		h.host, h.path = u.Hostname(), u.Path
	}
	return h
}

// concerns is true for our own configurations, and for those of users that ask for it. One
// that is being deleted is not changed.
func concerns(o *admission.Options, r *admission.Registered) bool {
	name := r.GetName()
	switch {
	case r.GetDeletionTimestamp() != nil:
		return false
	case slices.Contains(o.Own, name):
		return true
	case len(o.Only) > 0 && !slices.Contains(o.Only, name):
		return false
	default:
		return r.AsksFor(o.Namespace)
	}
}

// reduceConfiguration keeps of a configuration what [observer] reads.
func reduceConfiguration(obj client.Object) {
	if has := obj.GetAnnotations(); has != nil {
		obj.SetAnnotations(map[string]string{vocabulary.Injected.Native: has[vocabulary.Injected.Native]})
	}
	switch c := obj.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range c.Webhooks {
			w := &c.Webhooks[i]
			c.Webhooks[i] = admissionregistrationv1.MutatingWebhook{Name: w.Name, FailurePolicy: w.FailurePolicy, ClientConfig: w.ClientConfig}
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range c.Webhooks {
			w := &c.Webhooks[i]
			c.Webhooks[i] = admissionregistrationv1.ValidatingWebhook{Name: w.Name, FailurePolicy: w.FailurePolicy, ClientConfig: w.ClientConfig}
		}
	}
}
