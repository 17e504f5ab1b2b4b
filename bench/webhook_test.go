package bench_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllers "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/admission/certificate"
	"github.com/spillway-dev/spillway/internal/config/admit"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

const (
	emptyPath  = "/empty"
	emptyName  = "empty.bench.spillway.dev"
	configName = "deployments.config.spillway.dev"
)

// question is a request whose cost is measured, and what the answer has to have.
type question struct {
	name, webhook, answer string
	body                  []byte
}

// TestWebhookLatency asks the server, on the connections that an API server would
// use, for what the config ring answers and for what an empty handler answers; and
// asks what a user may read and reads a ConfigMap as often, which is what the config ring's answer waits for.
func TestWebhookLatency(t *testing.T) {
	c, ns := newClient(t), testenv.Namespace(t)
	if err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "app"}}); err != nil {
		t.Fatal(err)
	}
	w := serveWebhooks(t, ns)
	questions := []question{
		{"an empty handler", emptyName, `"allowed":true`, review(t, ns, "app")},
		{"config: all there, the hash is set", configName, `"patch":`, review(t, ns, "app")},
		{"config: something is missing, it is suspended", configName, `"patch":`, review(t, ns, "missing")},
	}
	ask := trusting(t, w)
	floor := latencies(t, "a bare question what a user may read, and a read of the ConfigMap", func() error {
		review := &authorizationv1.LocalSubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Namespace: ns}}
		review.Spec.User = "admin"
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{Namespace: ns, Verb: "get", Version: "v1", Resource: "configmaps"}
		return errors.Join(c.Create(t.Context(), review), c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "app"}, &corev1.ConfigMap{}))
	})
	var empty measured
	for _, q := range questions {
		url := w.URL(t, q.webhook)
		m := latencies(t, q.name, func() error { return ask(url, q.body, q.answer) })
		if q.webhook == emptyName {
			empty = m
			continue
		}
		fmt.Printf("| … over the empty handler, at p50 and p99 | %.1f, %.1f |\n", m.p50/empty.p50, m.p99/empty.p99)
		fmt.Printf("| … over the empty handler and the read that it waits for, at p50 (target: at most %d) | %.2f |\n", webhookTarget, m.p50/(empty.p50+floor.p50))
		if full && m.p50 > webhookTarget*(empty.p50+floor.p50) {
			t.Errorf("%s takes %.1f times what it waits for, want at most %d", q.name, m.p50/(empty.p50+floor.p50), webhookTarget)
		}
	}
}

// webhookTarget is what an answer may cost over an empty one and the read that
// it cannot do without.
const webhookTarget = 3

// serveWebhooks serves the config ring's webhooks and an empty one.
func serveWebhooks(t *testing.T, ns string) *testenv.Webhooks {
	t.Helper()
	declared := append(slices.Clone(admit.Declared(pin.Namespaces{}).Webhooks), admission.Webhook{
		Name: emptyName, Path: emptyPath, FailurePolicy: admissionregistrationv1.Ignore, TimeoutSeconds: 5,
	})
	w := testenv.RegisterWebhooks(t, ns, declared)
	yes := true
	mgr, err := ctrl.NewManager(testenv.Shared().Config(), ctrl.Options{
		Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"}, Controller: controllers.Controller{SkipNameValidation: &yes},
	})
	if err != nil {
		t.Fatal(err)
	}
	routes, err := admit.Routes(mgr, admit.Options{Namespaces: []string{ns}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	empty := webhook.HandlerFunc(func(context.Context, webhook.Request) webhook.Response { return webhook.Allowed("") })
	if err := certificate.Setup(mgr, w.Options, declared, append(routes, admission.Route{Path: emptyPath, Handler: empty})); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	w.WaitServed(t)
	return w
}

// review is one about a new Deployment that uses a ConfigMap.
func review(t *testing.T, ns, configMap string) []byte {
	t.Helper()
	d := deployment(ns, "web", useConfigMap(configMap), map[string]string{tracked: "true"})
	d.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
	object, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "1", Operation: admissionv1.Create, Namespace: ns, Name: "web", Object: runtime.RawExtension{Raw: object},
			Kind:     metav1.GroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment")),
			Resource: metav1.GroupVersionResource(appsv1.SchemeGroupVersion.WithResource("deployments")),
			UserInfo: authenticationv1.UserInfo{Username: "admin", Groups: []string{"system:masters"}}, // who may read what is hashed
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// trusting returns what asks the server, as a client that trusts the CA which
// was injected.
func trusting(t *testing.T, w *testenv.Webhooks) func(url string, body []byte, answer string) error {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.Bundle(t))
	c := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, MaxIdleConnsPerHost: concurrency}}
	return func(url string, body []byte, answer string) error {
		res, err := c.Post(url+"?timeout=5s", "application/json", bytes.NewReader(body))
		if err != nil {
			return err
		}
		defer res.Body.Close()
		raw, err := io.ReadAll(res.Body)
		if err != nil || !strings.Contains(string(raw), answer) {
			return fmt.Errorf("answered with %s: %w", raw, err)
		}
		return nil
	}
}

// measured is in milliseconds.
type measured struct{ p50, p99 float64 }

// latencies does something many times, as many at a time as there are
// connections, and prints how long one took and how many a second there were.
func latencies(t *testing.T, what string, do func() error) measured {
	t.Helper()
	each(t, concurrency, func(int) error { return do() }) // connect
	var mu sync.Mutex
	took := make([]float64, 0, webhookRequests)
	started := time.Now()
	each(t, webhookRequests, func(int) error {
		begun := time.Now()
		err := do()
		ms := time.Since(begun).Seconds() * 1000
		mu.Lock()
		defer mu.Unlock()
		took = append(took, ms)
		return err
	})
	rate := webhookRequests / time.Since(started).Seconds()
	slices.Sort(took)
	m := measured{took[len(took)/2], took[len(took)*99/100]}
	fmt.Printf("| webhook: %s: p50, p99, throughput with %d at a time | %.2f ms, %.2f ms, %.0f/s |\n", what, concurrency, m.p50, m.p99, rate)
	return m
}
