package testenv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// loopback is where webhooks are served in tests.
const loopback = "127.0.0.1"

// Webhooks is a registration of webhooks for one namespace, at a loopback address.
type Webhooks struct {
	// Options are for the manager that is to serve them. It injects its CA.
	Options   admission.Options
	namespace string
	client    client.Client
	// selects is true if one of the webhooks selects namespaces.
	selects bool
}

// RegisterWebhooks makes the webhooks of a ring known to the API server, for
// objects of the namespace alone, so that tests can run side by side. No server
// answers them until a manager runs with the Options. Two more webhooks, its probes,
// show [Webhooks.WaitServed] when calls reach the server.
func RegisterWebhooks(t testing.TB, namespace string, webhooks []admission.Webhook) *Webhooks {
	t.Helper()
	c, err := client.New(Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	port, err := controlplane.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort(loopback, strconv.Itoa(port))
	w := &Webhooks{namespace: namespace, client: c, Options: admission.Options{
		Enabled: true, Address: address, Hosts: []string{loopback}, Namespace: namespace,
		Own: []string{namespace}, Only: []string{namespace}, Now: time.Now,
	}}
	registration := admission.Registration{
		Metadata: metav1.ObjectMeta{Name: namespace}, Client: admission.ByURL("https://" + address), Namespaces: []string{namespace},
	}
	probes := append(slices.Clone(webhooks), probe(mutating), probe(validating))
	for _, hook := range webhooks {
		if hook.NamespaceSelector != nil && !w.selects {
			w.selects = true
			p := probe(selected)
			p.NamespaceSelector = hook.NamespaceSelector
			probes = append(probes, p)
		}
	}
	for _, obj := range registration.Configurations(probes) {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Delete(context.Background(), obj); err != nil {
				t.Log(err)
			}
		})
	}
	return w
}

// The API server watches the two kinds of configurations independently, and receives
// one of them a second later when it is busy: each kind has a probe of its own.
const (
	mutating   = "testenv-probe-mutating"
	validating = "testenv-probe-validating"
	// selected is the probe of a webhook that selects namespaces. The API server watches
	// these independently, too.
	selected = "testenv-probe-selected"
)

// probe is a webhook without a handler, for the ConfigMap of the same name.
// That it is refused with 404, and not for its certificate, shows that the server
// is called and trusted.
func probe(name string) admission.Webhook {
	return admission.Webhook{
		Name: name + ".spillway.dev", Path: "/probe", Mutating: name == mutating, TimeoutSeconds: 5,
		FailurePolicy: admissionregistrationv1.Fail,
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		}},
		MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "probe", Expression: "object.metadata.?name.orValue('') == '" + name + "'"}},
	}
}

// WaitServed waits until the API server calls the server, and trusts it.
func (w *Webhooks) WaitServed(t testing.TB) {
	t.Helper()
	w.WaitCalled(t, "could not find the requested resource") // its word for 404
}

// WaitCalled waits until the API server calls, and fails with this text.
func (w *Webhooks) WaitCalled(t testing.TB, text string) {
	t.Helper()
	Eventually(t, func(ctx context.Context) error {
		return errors.Join(w.called(ctx, mutating, text), w.called(ctx, validating, text))
	})
}

func (w *Webhooks) called(ctx context.Context, probe, text string) error {
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: probe}}
	err := w.client.Create(ctx, obj, client.DryRunAll)
	if err == nil {
		return fmt.Errorf("the API server does not call the webhook %s yet", probe)
	}
	if !strings.Contains(err.Error(), text) {
		return fmt.Errorf("the call of %s does not fail with %q: %w", probe, text, err)
	}
	return nil
}

// Select labels the namespace, and waits until the API server calls the webhooks that
// select it by that.
func (w *Webhooks) Select(t testing.TB, label, value string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, label, value)
	if err := w.client.Patch(t.Context(), ns, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	w.WaitSelected(t)
}

// WaitSelected waits until the API server calls the webhooks that select namespaces.
func (w *Webhooks) WaitSelected(t testing.TB) {
	t.Helper()
	if !w.selects {
		t.Fatal("no webhook selects namespaces")
	}
	Eventually(t, func(ctx context.Context) error { return w.called(ctx, selected, selected) })
}

// URL is where the API server calls a webhook, with the key that it shows, once the manager
// has set that.
func (w *Webhooks) URL(t testing.TB, name string) string {
	t.Helper()
	urls := map[string]string{}
	Eventually(t, func(ctx context.Context) error {
		mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
		for _, obj := range []client.Object{mutating, validating} {
			if err := w.client.Get(ctx, client.ObjectKey{Name: w.namespace}, obj); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("get the webhooks: %w", err)
			}
		}
		for _, hook := range mutating.Webhooks {
			urls[hook.Name] = *hook.ClientConfig.URL
		}
		for _, hook := range validating.Webhooks {
			urls[hook.Name] = *hook.ClientConfig.URL
		}
		if urls[name] == "https://"+w.Options.Address {
			return errors.New("the webhook has no path yet")
		}
		return nil
	})
	return urls[name]
}

// WaitInjected waits until the manager has injected its CA, for tests in which
// the server that presents the certificate is not to be trusted.
func (w *Webhooks) WaitInjected(t testing.TB) {
	t.Helper()
	Eventually(t, func(ctx context.Context) error {
		c := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := w.client.Get(ctx, client.ObjectKey{Name: w.namespace}, c); err != nil {
			return fmt.Errorf("get the webhooks: %w", err)
		}
		if len(c.Webhooks[0].ClientConfig.CABundle) == 0 {
			return errors.New("no CA has been injected yet")
		}
		return nil
	})
}

// WaitConfirmed waits until the manager has written all that it will write to its configurations and to those of
// users, for tests that count what it writes afterwards.
func (w *Webhooks) WaitConfirmed(t testing.TB, users ...string) {
	t.Helper()
	Eventually(t, func(ctx context.Context) error {
		all, err := admission.ListRegistered(ctx, w.client)
		if err != nil {
			return fmt.Errorf("list the webhooks: %w", err)
		}
		for i := range all {
			if name := all[i].GetName(); (name == w.namespace || slices.Contains(users, name)) && vocabulary.Injected.Get(all[i].GetAnnotations()) == "" {
				return fmt.Errorf("%s %s was not confirmed yet", all[i].Kind, name)
			}
		}
		return nil
	})
}

// Bundle is the CA bundle that was injected.
func (w *Webhooks) Bundle(t testing.TB) []byte {
	t.Helper()
	c := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: w.namespace}, c); err != nil {
		t.Fatal(err)
	}
	return c.Webhooks[0].ClientConfig.CABundle
}

// Guards installs policies about what no webhook answers, for objects of the namespace alone,
// until the end of the test.
func Guards(t testing.TB, c client.Client, namespace string, objects []client.Object) {
	t.Helper()
	for _, obj := range objects {
		obj.SetName(admission.GuardName(namespace, obj.GetName()))
		if b, ok := obj.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding); ok {
			b.Spec.PolicyName = admission.GuardName(namespace, b.Spec.PolicyName)
			var within *metav1.LabelSelector
			if b.Spec.MatchResources != nil {
				within = b.Spec.MatchResources.NamespaceSelector
			}
			b.Spec.MatchResources = &admissionregistrationv1.MatchResources{NamespaceSelector: admission.Within(within, []string{namespace})}
		}
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Delete(context.Background(), obj) })
	}
}

// InvalidBudget creates a budget that cannot be understood: it makes its kind one that accepts
// whatever it is given, as that of rollout-operator does, and as it is until it is applied again.
func InvalidBudget(t testing.TB, c client.Client, namespace string) *zonesv1.ZoneAwarePodDisruptionBudget {
	t.Helper()
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	definition.SetName("zoneawarepoddisruptionbudgets.rollout-operator.grafana.com")
	patch := `[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations"}]`
	if err := c.Patch(t.Context(), definition, client.RawPatch(types.JSONPatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	b := &zonesv1.ZoneAwarePodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "both"}}
	b.Spec.Selector.MatchLabels = map[string]string{"app": "x"}
	b.Spec.PodNamePartitionRegex = "("
	Eventually(t, func(ctx context.Context) error { return c.Create(ctx, b) })
	return b
}
