//go:build upgrade

package upgrade_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// endpoints stand in for kube-proxy: what the API server sends to the Service of the webhooks
// goes to one of the managers that are ready, by turns.
type endpoints struct {
	mu    sync.Mutex
	ready []string
	turn  int
}

// newEndpoints makes the Service a name of this machine. The API server calls its port 443, so
// who runs this must be allowed to listen there.
func (w *world) newEndpoints() *endpoints {
	w.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:443")
	if err != nil {
		w.t.Fatalf("the API server calls webhooks on port 443: %v; run the test as root, or allow it with sysctl net.ipv4.ip_unprivileged_port_start=443", err)
	}
	w.t.Cleanup(func() { _ = listener.Close() })
	service := &corev1.Service{}
	service.Namespace, service.Name = w.system, "spillway-webhooks"
	patch := []byte(`{"spec":{"type":"ExternalName","externalName":"127.0.0.1","clusterIP":null,"clusterIPs":null}}`)
	if err := w.client.Patch(w.t.Context(), service, client.RawPatch(types.MergePatchType, patch)); err != nil {
		w.t.Fatal(err)
	}
	e := &endpoints{}
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go e.forward(from)
		}
	}()
	return e
}

func (e *endpoints) forward(from net.Conn) {
	defer func() { _ = from.Close() }()
	e.mu.Lock()
	if len(e.ready) == 0 {
		e.mu.Unlock()
		return
	}
	e.turn++
	address := e.ready[e.turn%len(e.ready)]
	e.mu.Unlock()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	ended := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			ended <- struct{}{}
		}()
	}
	<-ended
}

// replica is a manager that answers webhooks.
type replica struct {
	*process

	address string
	of      *endpoints
}

// serve runs a manager of a version, and adds it once it is ready.
func (w *world) serve(v version, e *endpoints) *replica {
	w.t.Helper()
	var addresses [2]string
	for i := range addresses {
		port, err := controlplane.FreePort()
		if err != nil {
			w.t.Fatal(err)
		}
		addresses[i] = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	r := &replica{of: e, address: addresses[0]}
	r.process = w.manage(v, "--webhook-bind-address="+r.address, "--health-probe-bind-address="+addresses[1])
	testenv.Eventually(w.t, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addresses[1]+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("the manager of %s is not ready: %s", v.name, response.Status)
		}
		return nil
	})
	e.mu.Lock()
	e.ready = append(e.ready, r.address)
	e.mu.Unlock()
	return r
}

// leave ends a replica as Kubernetes does: no new connections go to it, and it receives SIGTERM.
func (r *replica) leave() {
	r.of.mu.Lock()
	r.of.ready = slices.DeleteFunc(r.of.ready, func(a string) bool { return a == r.address })
	r.of.mu.Unlock()
	r.stop()
}

// The answers that a request can get.
const (
	answered = "answered"
	ignored  = "ignored"
)

// ask creates a Deployment, not for good: a webhook that answers sets the hash of its config.
func (w *world) ask(ctx context.Context) (string, error) {
	obj := &unstructured.Unstructured{}
	w.object(deployment(77)).DeepCopyInto(obj)
	if err := w.client.Create(ctx, obj, client.DryRunAll); err != nil {
		return "", err
	}
	if value, _, _ := unstructured.NestedString(obj.Object, "spec", "template", "metadata", "annotations", hash); value != "" {
		return answered, nil
	}
	return ignored, nil
}

// until asks until the answer is this one.
func (w *world) until(want string) {
	w.t.Helper()
	testenv.Eventually(w.t, func(ctx context.Context) error {
		got, err := w.ask(ctx)
		if err == nil && got != want {
			err = fmt.Errorf("requests are %s, and are to be %s", got, want)
		}
		return err
	})
}

// asking asks all the time, and returns what ends it and counts the answers.
func (w *world) asking() (end func() map[string]int) {
	ctx, cancel := context.WithCancel(w.t.Context())
	counts, ended := map[string]int{}, make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			answer, err := w.ask(ctx)
			if errors.Is(err, context.Canceled) {
				return
			}
			if err != nil {
				answer = err.Error()
			}
			counts[answer]++
		}
	}()
	return func() map[string]int {
		cancel()
		<-ended
		return counts
	}
}

// prepared is a StatefulSet whose downscale must be prepared, by a webhook that must answer.
const prepared = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: prepared, labels: {spillway.dev/prepare-downscale: "true"}, annotations: {spillway.dev/prepare-downscale-http-path: prepare, spillway.dev/prepare-downscale-http-port: "8080"}},
spec: {replicas: 0, serviceName: x, selector: {matchLabels: {app: prepared}}, template: {metadata: {labels: {app: prepared}}, spec: {containers: [{name: c, image: x}]}}}}`

// During a rolling update every request is answered, by one version or the other. While no
// manager runs, webhooks are ignored or refuse, as docs/admission.md says; and afterwards they
// are answered again.
func TestWebhooksDuringAnUpgrade(t *testing.T) {
	w, old, now := newWorld(t), previous(t), current(t)
	install := func(v version) {
		t.Helper()
		if out, code := w.run(v, "install", "-n", w.system, "--image=example.test/spillway:x", "--rings=config,zones", "--watch-namespaces="+w.namespace); code != 0 {
			t.Fatalf("install: %s", out)
		}
	}
	install(old)
	e := w.newEndpoints()
	first := w.serve(old, e)
	w.apply(configMap(1), prepared)
	w.until(answered)

	end := w.asking()
	install(now)
	second := w.serve(now, e)
	first.leave()
	w.until(answered)
	if counts := end(); counts[answered] == 0 || len(counts) > 1 {
		t.Errorf("during the rolling update, requests were %v", counts)
	} else {
		t.Logf("during the rolling update, requests were %v", counts)
	}

	second.leave()
	w.until(ignored)
	fewer := w.object(prepared)
	for _, replicas := range []int64{2, 1} { // with the manager down it grows, and does not shrink
		if err := unstructured.SetNestedField(fewer.Object, replicas, "spec", "replicas"); err != nil {
			t.Fatal(err)
		}
		err := w.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(fewer.DeepCopy()), client.FieldOwner("user"), client.ForceOwnership)
		if refused := err != nil && strings.Contains(err.Error(), "failed calling webhook"); refused != (replicas == 1) {
			t.Errorf("%d replicas without a manager: %v", replicas, err)
		}
	}
	third := w.serve(now, e)
	w.until(answered)
	third.leave()
}
