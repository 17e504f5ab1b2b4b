package certificate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// actTimeout bounds one write.
const actTimeout = 10 * time.Second

// actor does all the writes.
type actor struct {
	writer  client.Writer
	options admission.Options
}

// keepMaterial writes the Secret. It is created only if there is none, and updated
// only if it is still the one that was observed: of two replicas one gets a
// conflict, and reads what the other wrote.
func (a actor) keepMaterial(ctx context.Context, secret *corev1.Secret, m material) error {
	ctx, cancel := context.WithTimeout(ctx, actTimeout)
	defer cancel()
	if secret == nil {
		secret = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: a.options.Namespace, Name: a.options.KeysSecret(), Labels: map[string]string{
				"app.kubernetes.io/name": "spillway", admission.ManagedByLabel: admission.ManagedBy,
			}},
			Type: corev1.SecretTypeTLS, Data: m,
		}
		if a.options.Source != admission.Generated {
			secret.Type = corev1.SecretTypeOpaque
		}
		err := a.writer.Create(ctx, secret, client.FieldOwner(kube.FieldOwner))
		if apierrors.IsForbidden(err) { // an installation makes it empty, so that this takes no permission
			return fmt.Errorf("find Secret %s in namespace %s; install Spillway again, or create it empty: %w", secret.Name, secret.Namespace, err)
		}
		if err != nil {
			return fmt.Errorf("create Secret %s: %w", secret.Name, err)
		}
		return nil
	}
	secret = secret.DeepCopy()
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	maps.Copy(secret.Data, m)
	if err := a.writer.Update(ctx, secret, client.FieldOwner(kube.FieldOwner)); err != nil {
		return fmt.Errorf("update Secret %s: %w", secret.Name, err)
	}
	return nil
}

// operation is one operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// inject writes the caBundles and paths that differ, while the configuration is the one
// that was observed.
func (a actor) inject(ctx context.Context, i *injection) error {
	ctx, cancel := context.WithTimeout(ctx, actTimeout)
	defer cancel()
	raw, err := json.Marshal(i.operations())
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	err = a.writer.Patch(ctx, i.configuration.object(), client.RawPatch(types.JSONPatchType, raw), client.FieldOwner(kube.FieldOwner))
	if err != nil {
		return fmt.Errorf("inject the CA and the paths into %s %q: %w", i.configuration.kind, i.configuration.name, err)
	}
	return nil
}

func (i *injection) operations() []operation {
	// Writing the observed version is refused as a conflict once it has changed.
	operations := []operation{{Op: "replace", Path: "/metadata/resourceVersion", Value: i.configuration.resourceVersion}}
	if i.confirms && !i.configuration.annotated {
		operations = append(operations, operation{Op: "add", Path: "/metadata/annotations", Value: map[string]string{}})
	}
	if i.confirms {
		at := strings.ReplaceAll(vocabulary.Injected.Native, "/", "~1")
		return append(operations, operation{Op: "add", Path: "/metadata/annotations/" + at, Value: i.configuration.content})
	}
	for n, h := range i.configuration.hooks {
		at := fmt.Sprintf("/webhooks/%d/clientConfig/", n)
		if i.bundle != nil && !same(h.bundle, i.bundle) {
			operations = append(operations, operation{Op: "add", Path: at + "caBundle", Value: i.bundle})
		}
		switch {
		case i.paths == nil || i.paths[n] == "" || i.paths[n] == h.path:
		case h.url == "":
			operations = append(operations, operation{Op: "add", Path: at + "service/path", Value: i.paths[n]})
		default:
			operations = append(operations, operation{Op: "replace", Path: at + "url", Value: h.urlWith(i.paths[n])})
		}
	}
	return operations
}

// urlWith is the URL with another path.
func (h *hook) urlWith(path string) string {
	u, err := url.Parse(h.url)
	if err != nil {
		return h.url // it was parsed before
	}
	u.Path = path
	return u.String()
}

func (c *configuration) object() client.Object {
	meta := metav1.ObjectMeta{Name: c.name}
	if c.kind == admission.MutatingKind {
		return &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta}
	}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta}
}

// isConflict is true if the write was refused because another replica was faster:
// what it was decided from no longer holds, and the next pass decides again.
func isConflict(err error) bool {
	return apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err)
}
