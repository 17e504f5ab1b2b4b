package gates_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/barrier"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/outbound"
	"github.com/spillway-dev/spillway/internal/zones"
)

func TestMain(m *testing.M) {
	testenv.Parallel(6)
	testenv.Main(m, testenv.Options{Nodes: 1}) // on which Pods of Jobs run
}

// world is a namespace of its own, a user in it, and a source that answers with a status.
type world struct {
	t         *testing.T
	client    client.Client
	namespace string
	// user is who the manager is, an administrator if empty.
	user     string
	requests *fault.Injector
	clock    *barrier.Clock
	barrier  *barrier.Barrier
	url      string
	status   atomic.Int32
	asked    atomic.Int32
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, namespace: testenv.Namespace(t), requests: fault.New(), clock: &barrier.Clock{}}
	if w.client, err = client.New(testenv.Shared().Config(), client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	w.barrier = barrier.New(w.client, w.clock)
	objects, err := manifests.KindsOf([]string{manager.RingZones})
	if err != nil {
		t.Fatal(err)
	}
	testenv.Kinds(t, w.client, objects)
	testenv.KnownReasons(t, w.client, w.namespace, &v1alpha1.RolloutGateList{})
	w.status.Store(http.StatusOK)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		w.asked.Add(1)
		rw.WriteHeader(int(w.status.Load()))
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

// manage runs a manager of the namespace of the world, and of others.
func (w *world) manage(inj *fault.Injector, others ...string) (stop func()) {
	w.t.Helper()
	hosts, err := outbound.ParseHosts([]string{"127.0.0.1"})
	if err != nil {
		w.t.Fatal(err)
	}
	o := manager.Options{
		Rings: []string{manager.RingZones}, Namespaces: append([]string{w.namespace}, others...),
		Zones: zones.Options{Now: w.clock.Now}, Config: config.Options{Now: w.clock.Now},
	}
	o.Gates.Hosts = hosts
	cfg := testenv.Shared().Config()
	if w.user != "" {
		cfg = testenv.Shared().ConfigAs(w.user)
	}
	return w.barrier.Run(w.t, cfg, inj, o)
}

// template makes a GateTemplate, given as YAML, with URL in place of the source's.
func (w *world) template(spec string) *v1alpha1.GateTemplate {
	w.t.Helper()
	t := &v1alpha1.GateTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "check"}}
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(spec, "URL", w.url)), &t.Spec); err != nil {
		w.t.Fatal(spec, err)
	}
	if err := w.client.Create(w.t.Context(), t); err != nil {
		w.t.Fatal(err)
	}
	return t
}

// gate makes a RolloutGate, which the rollout has reached unless it is too early.
func (w *world) gate(name string, reached bool) {
	w.t.Helper()
	g := &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	g.Spec = v1alpha1.RolloutGateSpec{
		TargetRef: v1alpha1.TargetReference{APIVersion: "x.test/v1", Kind: "X", Name: "x"}, Revision: "v2", Stage: "a", Gate: "check", When: "After",
	}
	if reached {
		now := metav1.NowMicro()
		g.Spec.ReachedAt = &now
	}
	if err := w.client.Create(w.t.Context(), g); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) get(name string) *v1alpha1.RolloutGate {
	w.t.Helper()
	g := &v1alpha1.RolloutGate{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, g); err != nil {
		w.t.Fatal(err)
	}
	return g
}

// says makes sure that a gate says something: "True: 1 of 1 measurements succeeded".
func (w *world) says(name, want string) {
	w.t.Helper()
	w.barrier.Wait(w.t)
	if err := w.said(name, want); err != nil {
		w.t.Error(err)
	}
}

// saysEventually is says for what depends on others than the manager.
func (w *world) saysEventually(name, want string) {
	w.t.Helper()
	testenv.Eventually(w.t, func(context.Context) error { return w.said(name, want) })
}

func (w *world) said(name, want string) error {
	c := apimeta.FindStatusCondition(w.get(name).Status.Conditions, v1alpha1.GatePassed)
	if c == nil {
		return errors.New("it says nothing")
	}
	if got := string(c.Status) + ": " + c.Message; !strings.HasPrefix(got, want) {
		return fmt.Errorf("it says %s, want %s", got, want)
	}
	return nil
}

// TestWhatIsMeasured checks that a gate is measured once it is reached and its template
// exists, that its verdict stays, and that nothing is written after that.
func TestWhatIsMeasured(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.manage(w.requests)
	w.gate("early", false)
	w.gate("reached", true)
	w.template(`{http: {url: URL}}`)
	w.says("reached", "True: 1 of 1 measurements succeeded; last: status 200")
	w.status.Store(http.StatusNotFound)
	w.gate("refused", true)
	w.says("refused", "False: failed measurements: 1 (failureLimit 0); last: status 404")
	if g := w.get("early"); g.Status.Measurement != nil || len(g.Status.Conditions) > 0 {
		t.Errorf("what the rollout has not reached is measured: %+v", g.Status)
	}
	if n := len(w.requests.Writes()); n != 2 || w.asked.Load() != 2 {
		t.Errorf("%d writes, asked %d times", n, w.asked.Load())
	}
}

// TestASourceThatComesBack checks that errors wait, that the gate says so with the time of the
// next measurement, and that it goes on.
func TestASourceThatComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.manage(w.requests)
	w.status.Store(http.StatusServiceUnavailable)
	w.template(`{http: {url: URL}, interval: 1h}`)
	w.gate("g", true)
	w.says("g", "Unknown: 0 of 0 measurements succeeded, errors: 1; last: status 503")
	w.status.Store(http.StatusOK)
	w.barrier.Step(t, 59*time.Minute)
	w.says("g", "Unknown: 0 of 0 measurements succeeded, errors: 1; last: status 503")
	w.barrier.Step(t, time.Minute)
	w.says("g", "True: 1 of 1 measurements succeeded, errors: 1; last: status 200")
}

// TestAUserDecides checks that the decision of a user ends the measuring.
func TestAUserDecides(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.manage(w.requests)
	w.template(`{http: {url: URL}, initialDelay: 1h}`)
	w.gate("g", true)
	w.says("g", "Unknown: no measurement yet")
	g := w.get("g")
	apimeta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{Type: v1alpha1.GatePassed, Status: metav1.ConditionFalse, Reason: "Refused", Message: "not today"})
	if err := w.client.Status().Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	template := &v1alpha1.GateTemplate{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "check"}, template); err != nil {
		t.Fatal(err)
	}
	template.Spec.InitialDelay = nil
	if err := w.client.Update(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	w.gate("other", true)
	w.says("other", "True: ")
	w.says("g", "False: not today")
}

// TestAChangedTemplateBeginsAgain checks that a gate without a verdict is measured as the
// template says now.
func TestAChangedTemplateBeginsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.manage(w.requests)
	template := w.template(`{http: {url: "URL/{{ .team }}"}, errorLimit: 100, interval: 1h}`)
	w.gate("g", true)
	w.says("g", "Unknown: 0 of 0 measurements succeeded, errors: 1; last: url: {{ .team }} is no label; the labels are gate, group")
	template.Spec.HTTP.URL = w.url + "/{{ .stage }}"
	if err := w.client.Update(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	w.says("g", "True: 1 of 1 measurements succeeded; last: status 200")
	if sent := w.get("g").Status.Measurement.Sent; sent != "GET "+w.url+"/a" {
		t.Error(sent)
	}
}

// TestSecretsStayInTheirNamespace checks that a Secret is used if it names the host, and that a
// gate says what is missing otherwise.
func TestSecretsStayInTheirNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.manage(w.requests)
	w.template(`{http: {url: URL}, secretRef: {name: access}, interval: 1h}`)
	w.gate("g", true)
	w.says("g", `Unknown: 0 of 0 measurements succeeded, errors: 1; last: read Secret access: secrets "access" not found`)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "access", Annotations: map[string]string{"spillway.dev/gate-hosts": "127.0.0.1"}},
		StringData: map[string]string{"token": "hunter22"},
	}
	if err := w.client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	w.barrier.Step(t, time.Hour)
	w.says("g", "True: 1 of 1 measurements succeeded, errors: 1; last: status 200")
	for _, r := range w.requests.Requests() {
		if r.Resource == "secrets" && (r.Verb != "get" || r.Name != "access" || r.Namespace != w.namespace) {
			t.Errorf("%+v", r)
		}
	}
}

// TestASlowTenantDelaysNoOther checks that the gates of one namespace whose source does not
// answer leave room for those of another.
func TestASlowTenantDelaysNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	release, busy, most := make(chan struct{}), atomic.Int32{}, atomic.Int32{}
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		n := busy.Add(1)
		most.Store(max(most.Load(), n))
		<-release
		busy.Add(-1)
	}))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(release) })
	other := &world{t: t, client: w.client, namespace: testenv.Namespace(t), url: silent.URL}
	w.manage(w.requests, other.namespace)
	other.template(`{http: {url: URL}}`)
	const gates = 40
	for i := range gates {
		other.gate(fmt.Sprint("g", i), true)
	}
	testenv.Eventually(t, func(context.Context) error {
		if busy.Load() < 2 {
			return errors.New("the silent source is not asked")
		}
		return nil
	})
	w.template(`{http: {url: URL}}`)
	w.gate("g", true)
	w.saysEventually("g", "True: ")
	if n := most.Load(); n > 2 {
		t.Errorf("%d requests of a namespace are under way", n)
	}
}
