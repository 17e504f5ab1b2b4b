package certificate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/admission/certificate"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Configurations of users are served whenever they come or change, by either
// spelling of the labels; those that do not ask are left alone.
func TestConfigurationsOfUsers(t *testing.T) {
	w := newWorld(t, ignore, labels)
	name := func(suffix string) string { return w.namespace + "-" + suffix }
	w.user(name("before"), w.asks())
	w.user(name("other"), map[string]string{"grafana.com/inject-rollout-operator-ca": "true", "grafana.com/namespace": "other"})
	w.user(name("no"), map[string]string{"grafana.com/inject-rollout-operator-ca": "false", "grafana.com/namespace": w.namespace})
	w.user(name("relabelled"), nil)
	w.serve(testenv.Shared().Config(), everywhere)
	w.injected(name("before"))

	w.user(name("after"), w.asks())
	w.user(name("native"), map[string]string{"spillway.dev/inject-ca": "true", "spillway.dev/manager-namespace": w.namespace})
	w.injected(name("after"))
	w.injected(name("native"))

	w.patch(name("relabelled"), fmt.Sprintf(`{"metadata":{"labels":{"spillway.dev/inject-ca":"true","grafana.com/namespace":%q}}}`, w.namespace))
	w.injected(name("relabelled"))

	w.patch(name("after"), `{"webhooks":[{"name":"a.example.test","clientConfig":{"caBundle":null}}]}`)
	w.injected(name("after"))

	for _, left := range []string{"other", "no"} {
		if b, err := w.bundle(name(left)); err != nil || len(b) > 0 {
			t.Errorf("%s has the CA %q: %v", left, b, err)
		}
	}
}

func (w *world) patch(name, patch string) {
	w.t.Helper()
	c := &admissionregistrationv1.MutatingWebhookConfiguration{}
	c.Name = name
	if err := w.client.Patch(w.t.Context(), c, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) configuration(name string) *admissionregistrationv1.MutatingWebhookConfiguration {
	w.t.Helper()
	c := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, c); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// Nothing but caBundle is written, and that it was: each once, and by the next manager not again.
func TestOnlyTheBundleIsWritten(t *testing.T) {
	w := newWorld(t, ignore, labels)
	name := w.namespace + "-user"
	w.user(name, w.asks())
	before := w.configuration(name)
	inj := fault.New()
	_, stop := w.serve(inj.Wrap(testenv.Shared().Config()), everywhere)
	w.injected(name)
	w.webhooks.WaitConfirmed(t, name)
	stop()
	w.serve(inj.Wrap(testenv.Shared().Config()), everywhere)
	w.user(w.namespace+"-proof", w.asks()) // proves that all before it was seen
	w.injected(w.namespace + "-proof")
	w.webhooks.WaitConfirmed(t, w.namespace+"-proof")
	patches := 0
	for _, r := range inj.Writes() {
		if r.Name == name {
			patches++
		}
	}
	if patches != 2 {
		t.Errorf("it was written %d times", patches)
	}
	after := w.configuration(name)
	delete(after.Annotations, vocabulary.Injected.Native)
	if len(after.Annotations) == 0 {
		after.Annotations = before.Annotations
	}
	for i := range after.Webhooks {
		after.Webhooks[i].ClientConfig.CABundle = nil
	}
	if after.Generation != before.Generation+1 {
		t.Errorf("it was written %d times", after.Generation-before.Generation)
	}
	after.Generation, after.ResourceVersion, after.ManagedFields = before.Generation, before.ResourceVersion, before.ManagedFields
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("more was written than the CA:\n%s", diff)
	}
}

// Restricted to names, only these are looked at, and ours.
func TestRestrictedToNames(t *testing.T) {
	w := newWorld(t, ignore, labels)
	listed, not := w.namespace+"-listed", w.namespace+"-not"
	w.user(listed, w.asks())
	w.user(not, w.asks())
	inj := fault.New()
	w.serve(inj.Wrap(testenv.Shared().Config()), func(o *admission.Options) { o.Only = []string{listed} })
	w.injected(listed)
	w.injected(w.namespace)
	if b, err := w.bundle(not); err != nil || len(b) > 0 {
		t.Errorf("it has the CA %q: %v", b, err)
	}
	for _, r := range inj.Requests() {
		if r.Name == not {
			t.Errorf("asked for %+v", r)
		}
	}
}

// A write that failed is made later: what is missing is seen from the
// configuration, not remembered from an event.
func TestFailedInjectionsAreMadeLater(t *testing.T) {
	for name, fails := range map[string]func(*fault.Injector, func(fault.Request) bool){
		"conflicts": func(i *fault.Injector, match func(fault.Request) bool) { i.Conflict(match) },
		"no connection": func(i *fault.Injector, _ func(fault.Request) bool) {
			i.Cut()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ignore, labels)
			user := w.namespace + "-user"
			inj := fault.New()
			w.serve(inj.Wrap(testenv.Shared().Config()), everywhere)
			w.injected(w.namespace)
			tried := make(chan struct{}, 1000)
			fails(inj, func(r fault.Request) bool {
				if r.Name == user {
					tried <- struct{}{}
				}
				return r.Name == user
			})
			w.user(user, w.asks())
			if name == "conflicts" {
				<-tried
				<-tried // it tries again, though nothing happens
			}
			if err := w.isInjected(user); err == nil {
				t.Error("the fault has no effect")
			}
			inj.Conflict(nil)
			inj.Restore()
			w.injected(user)
		})
	}
}

// A configuration that changed since it was seen is not written.
func TestPreconditionOfInjections(t *testing.T) {
	w := newWorld(t, ignore, labels)
	name := w.namespace + "-user"
	w.user(name, w.asks())
	seen := w.configuration(name)
	data, err := certificate.MaterialDue(time.Now().Add(time.Hour), time.Now().Add(time.Hour), nil)
	if err != nil {
		t.Fatal(err)
	}
	ca := data[certificate.KeyBundle]
	w.patch(name, `{"metadata":{"labels":{"grafana.com/namespace":"another"}}}`)
	before := w.configuration(name)
	if err := certificate.Inject(t.Context(), w.client, name, seen.ResourceVersion, nil, ca); !certificate.IsConflict(err) {
		t.Errorf("the write was not refused: %v", err)
	}
	if diff := cmp.Diff(before, w.configuration(name)); diff != "" {
		t.Errorf("the write did something:\n%s", diff)
	}
	if err := certificate.Inject(t.Context(), w.client, name, before.ResourceVersion, nil, ca); err != nil {
		t.Errorf("without anybody in between: %v", err)
	}
}

// To install again leaves the CA and the paths where they were injected: they belong to
// the manager.
func TestInstallingAgainKeepsTheBundle(t *testing.T) {
	w := newWorld(t, ignore, labels)
	r := admission.Registration{
		Metadata: metav1.ObjectMeta{Name: w.namespace + "-installed", Labels: w.asks()}, Namespaces: []string{w.namespace}, Client: admission.ByService(w.namespace),
	}
	install := func() {
		t.Helper()
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r.Configurations(w.declared)[0])
		if err != nil {
			t.Fatal(err)
		}
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
		obj := &unstructured.Unstructured{Object: content}
		if err := w.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner(kube.FieldOwner), client.ForceOwnership); err != nil {
			t.Fatal(err)
		}
	}
	install()
	t.Cleanup(func() {
		if err := w.client.Delete(context.Background(), r.Configurations(w.declared)[0]); err != nil {
			t.Log(err)
		}
	})
	w.serve(testenv.Shared().Config(), everywhere, func(o *admission.Options) {
		o.Hosts, o.Own = append(o.Hosts, admission.ServiceHost(w.namespace)), append(o.Own, r.Metadata.Name)
	})
	w.injected(r.Metadata.Name)
	w.eventually(func() error {
		if at := w.configuration(r.Metadata.Name).Webhooks[0].ClientConfig.Service.Path; at == nil || !strings.HasPrefix(*at, path+"/") {
			return errors.New("it has no path yet")
		}
		return nil
	})
	before := w.configuration(r.Metadata.Name)
	install()
	if now := w.configuration(r.Metadata.Name); now.ResourceVersion != before.ResourceVersion {
		t.Errorf("to install again changed something:\n%s", cmp.Diff(before, now))
	}
}
