package certificate_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllers "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/admission/certificate"
	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

const path = "/config-maps"

// configMaps is a webhook for the ConfigMaps of a test.
func configMaps(policy admissionregistrationv1.FailurePolicyType) admission.Webhook {
	return admission.Webhook{
		Name: "configmaps.test.spillway.dev", Path: path, Mutating: true, FailurePolicy: policy, TimeoutSeconds: 8,
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		}},
		MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "of-the-test", Expression: "object.metadata.?generateName.orValue('') == 'test-'"}},
	}
}

// world is a namespace whose webhooks are registered, and a user in it.
type world struct {
	t         *testing.T
	client    client.Client
	namespace string
	webhooks  *testenv.Webhooks
	declared  []admission.Webhook
	handle    webhook.HandlerFunc
	clock     *clock
}

func newWorld(t *testing.T, policy admissionregistrationv1.FailurePolicyType, handle webhook.HandlerFunc) *world {
	t.Helper()
	t.Parallel()
	c, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, client: c, namespace: testenv.Namespace(t), declared: []admission.Webhook{configMaps(policy)}, handle: handle, clock: &clock{}}
	w.webhooks = testenv.RegisterWebhooks(t, w.namespace, w.declared)
	w.webhooks.Options.Now = w.clock.now
	w.webhooks.Options.ServerTime = func(context.Context) (time.Time, error) { return w.clock.now(), nil }
	return w
}

// clock shows the time, but for a difference.
type clock struct{ difference atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.difference.Load())) }

func (c *clock) set(t time.Time) { c.difference.Store(int64(time.Until(t))) }

// serve runs a manager that serves the webhooks, and returns its address of
// probes and how to stop it.
func (w *world) serve(cfg *rest.Config, change ...func(*admission.Options)) (probes string, stop func()) {
	w.t.Helper()
	o := w.webhooks.Options
	for _, c := range change {
		c(&o)
	}
	probes = freeAddress(w.t)
	yes := true
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: probes,
		LeaderElection: true, LeaderElectionID: "test", LeaderElectionNamespace: w.namespace, LeaderElectionReleaseOnCancel: true,
		Controller: controllers.Controller{SkipNameValidation: &yes},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := certificate.Setup(mgr, o, w.declared, []admission.Route{{Path: path, Handler: w.handle}}); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(stop)
	return probes, stop
}

func freeAddress(t *testing.T) string {
	t.Helper()
	port, err := controlplane.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

func (w *world) eventually(check func() error) {
	w.t.Helper()
	testenv.Eventually(w.t, func(context.Context) error { return check() })
}

// ready is an error while the manager at this address of probes is not.
func ready(probes string) error {
	res, err := http.Get("http://" + probes + "/readyz")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New("not ready")
	}
	return nil
}

// write creates a ConfigMap, and returns it as it was stored.
func (w *world) write(options ...client.CreateOption) (*corev1.ConfigMap, error) {
	cm := w.configMap()
	return cm, w.client.Create(w.t.Context(), cm, options...)
}

func (w *world) configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, GenerateName: "test-"}}
}

func (w *world) key() client.ObjectKey {
	return client.ObjectKey{Namespace: w.namespace, Name: admission.SecretName}
}

func (w *world) secret() (*corev1.Secret, error) {
	s := &corev1.Secret{}
	return s, w.client.Get(w.t.Context(), w.key(), s)
}

// leaf is the certificate in the Secret.
func (w *world) leaf() (*x509.Certificate, error) {
	s, err := w.secret()
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(s.Data[certificate.KeyLeaf], s.Data[certificate.KeyLeafKey])
	return pair.Leaf, err
}

// served is the certificate that is presented at the address.
func (w *world) served() (*x509.Certificate, error) {
	conn, err := tls.Dial("tcp", w.webhooks.Options.Address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0], nil
}

// servesOther waits until the certificate that is presented is that of the
// Secret, and not the one before.
func (w *world) servesOther(before *x509.Certificate) *x509.Certificate {
	w.t.Helper()
	var now *x509.Certificate
	w.eventually(func() error {
		kept, err := w.leaf()
		if err != nil {
			return err
		}
		if now, err = w.served(); err != nil {
			return err
		}
		if !kept.Equal(now) || (before != nil && now.Equal(before)) {
			return errors.New("it does not serve another certificate yet")
		}
		return nil
	})
	return now
}

// touch changes something of the Secret that does not matter, so that the manager looks.
func (w *world) touch() {
	w.t.Helper()
	w.changeSecret(func(s *corev1.Secret) {
		s.Annotations = map[string]string{"example.test/touched": strconv.FormatInt(time.Now().UnixNano(), 10)}
	})
}

func (w *world) changeSecret(change func(*corev1.Secret)) {
	w.t.Helper()
	w.eventually(func() error {
		s, err := w.secret()
		if err != nil {
			return err
		}
		change(s)
		return w.client.Update(w.t.Context(), s)
	})
}

func (w *world) createSecret(data map[string][]byte) {
	w.t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: admission.SecretName}, Data: data}
	if err := w.client.Create(w.t.Context(), s); err != nil {
		w.t.Fatal(err)
	}
}

// bundle is the caBundle of the first webhook of a configuration.
func (w *world) bundle(name string) ([]byte, error) {
	c := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, c); err != nil {
		return nil, err
	}
	return c.Webhooks[0].ClientConfig.CABundle, nil
}

// injected waits until a mutating configuration has the CA of the Secret in all
// of its webhooks.
func (w *world) injected(name string) {
	w.t.Helper()
	w.eventually(func() error { return w.isInjected(name) })
}

func (w *world) isInjected(name string) error {
	s, err := w.secret()
	if err != nil {
		return err
	}
	c := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, c); err != nil {
		return err
	}
	for _, hook := range c.Webhooks {
		if string(hook.ClientConfig.CABundle) != string(s.Data[certificate.KeyBundle]) {
			return fmt.Errorf("webhook %s has another CA", hook.Name)
		}
	}
	return nil
}

func authorities(bundle []byte) int {
	n := 0
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		n++
	}
	return n
}

// user makes a webhook configuration as users have them, for objects that do not exist.
func (w *world) user(name string, labels map[string]string) {
	w.t.Helper()
	hook := func(name string) admissionregistrationv1.MutatingWebhook {
		class, url := admissionregistrationv1.SideEffectClassNone, "https://127.0.0.1:1/x"
		return admissionregistrationv1.MutatingWebhook{
			Name: name, SideEffects: &class, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"example.test"}, APIVersions: []string{"v1"}, Resources: []string{"none"}},
			}},
		}
	}
	c := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{"example.test/note": "kept"}},
		Webhooks:   []admissionregistrationv1.MutatingWebhook{hook("a.example.test"), hook("b.example.test")},
	}
	if err := w.client.Create(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := w.client.Delete(context.Background(), c); err != nil && !apierrors.IsNotFound(err) {
			w.t.Log(err)
		}
	})
}

// asks are the labels by which a configuration asks for the CA of this world.
func (w *world) asks() map[string]string {
	return map[string]string{"grafana.com/inject-rollout-operator-ca": "true", "grafana.com/namespace": w.namespace}
}

// everywhere makes the manager look at all configurations, not only at its own.
func everywhere(o *admission.Options) { o.Only = nil }
