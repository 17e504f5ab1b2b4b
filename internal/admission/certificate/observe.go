package certificate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// observer does all the reads.
type observer struct {
	options admission.Options
	// secrets has the Secret of a generated certificate; nil for other sources.
	secrets client.Reader
	// views have the webhook configurations, each in one of them.
	views []client.Reader
}

func (r *observer) observe(ctx context.Context) (observed, error) {
	o := observed{now: r.options.Now(), hosts: r.options.Hosts, generated: r.options.Source == admission.Generated}
	var err error
	if o.generated {
		o.secret, o.material, err = r.readSecret(ctx)
	} else {
		o.material, err = readFiles(r.options.CertDir)
	}
	if err != nil {
		return observed{}, err
	}
	o.configurations, err = r.readConfigurations(ctx)
	return o, err
}

// readSecret returns nil if there is none.
func (r *observer) readSecret(ctx context.Context) (*corev1.Secret, material, error) {
	secret := &corev1.Secret{}
	err := r.secrets.Get(ctx, client.ObjectKey{Namespace: r.options.Namespace, Name: r.options.SecretName}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the certificate's Secret: %w", err)
	}
	return secret, material(secret.Data), nil
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

// readConfigurations returns those whose caBundle is ours to write, by kind and name.
func (r *observer) readConfigurations(ctx context.Context) ([]configuration, error) {
	var found []configuration
	for _, view := range r.views {
		var (
			mutating   admissionregistrationv1.MutatingWebhookConfigurationList
			validating admissionregistrationv1.ValidatingWebhookConfigurationList
		)
		for _, list := range []client.ObjectList{&mutating, &validating} {
			if err := view.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
				return nil, fmt.Errorf("list webhook configurations: %w", err)
			}
		}
		found = append(found, concerned(&r.options, mutating.Items, validating.Items)...)
	}
	slices.SortFunc(found, func(a, b configuration) int { return strings.Compare(a.kind+a.name, b.kind+b.name) })
	return found, nil
}

func concerned(o *admission.Options, mutating []admissionregistrationv1.MutatingWebhookConfiguration, validating []admissionregistrationv1.ValidatingWebhookConfiguration) []configuration {
	var found []configuration
	for i := range mutating {
		if injects(o, &mutating[i]) {
			found = append(found, configurationOf(admission.MutatingKind, &mutating[i], mutatingBundles(&mutating[i]), webhooksOfMutating(&mutating[i])))
		}
	}
	for i := range validating {
		if injects(o, &validating[i]) {
			found = append(found, configurationOf(admission.ValidatingKind, &validating[i], validatingBundles(&validating[i]), webhooksOfValidating(&validating[i])))
		}
	}
	return found
}

func configurationOf(kind string, obj client.Object, bundles [][]byte, webhooks []unansweredWebhook) configuration {
	return configuration{kind: kind, name: obj.GetName(), resourceVersion: obj.GetResourceVersion(), bundles: bundles, webhooks: webhooks}
}

func mutatingBundles(c *admissionregistrationv1.MutatingWebhookConfiguration) [][]byte {
	var bundles [][]byte
	for i := range c.Webhooks {
		bundles = append(bundles, c.Webhooks[i].ClientConfig.CABundle)
	}
	return bundles
}

func validatingBundles(c *admissionregistrationv1.ValidatingWebhookConfiguration) [][]byte {
	var bundles [][]byte
	for i := range c.Webhooks {
		bundles = append(bundles, c.Webhooks[i].ClientConfig.CABundle)
	}
	return bundles
}

// injects is true for our own configurations, unless cert-manager injects into them,
// and for those of users that ask for it. One that is being deleted is not changed.
func injects(o *admission.Options, obj client.Object) bool {
	name := obj.GetName()
	switch {
	case obj.GetDeletionTimestamp() != nil:
		return false
	case slices.Contains(o.Own, name):
		return o.Source != admission.CertManager
	case len(o.Only) > 0 && !slices.Contains(o.Only, name):
		return false
	default:
		labels := obj.GetLabels()
		return vocabulary.InjectCA.Get(labels) == "true" && vocabulary.ServedFrom.Get(labels) == o.Namespace
	}
}

// reduceConfiguration keeps of a configuration what [observer] reads.
func reduceConfiguration(obj client.Object) {
	obj.SetAnnotations(nil)
	switch c := obj.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range c.Webhooks {
			w := &c.Webhooks[i]
			c.Webhooks[i] = admissionregistrationv1.MutatingWebhook{Name: w.Name, FailurePolicy: w.FailurePolicy, ClientConfig: bundleOnly(w.ClientConfig)}
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range c.Webhooks {
			w := &c.Webhooks[i]
			c.Webhooks[i] = admissionregistrationv1.ValidatingWebhook{Name: w.Name, FailurePolicy: w.FailurePolicy, ClientConfig: bundleOnly(w.ClientConfig)}
		}
	}
}

func bundleOnly(c admissionregistrationv1.WebhookClientConfig) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{CABundle: c.CABundle}
}
