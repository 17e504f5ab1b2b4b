package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllers "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/barrier"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/notify"
	"github.com/spillway-dev/spillway/internal/outbound"
)

func TestMain(m *testing.M) {
	testenv.Parallel(6)
	testenv.Main(m, testenv.Options{})
}

// receiver gets messages, as CloudEvents.
type receiver struct {
	url string

	mu     sync.Mutex
	status int
	// silent is closed once it answers, nil if it always does.
	silent chan struct{}
	got    []event
	tried  int
}

type event struct {
	ID   string `json:"id"`
	Data struct {
		Headline  string `json:"headline"`
		Sentence  string `json:"sentence"`
		Namespace string `json:"namespace"`
	} `json:"data"`
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{status: http.StatusOK}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL + "/T0SECRET"
	return r
}

// ServeHTTP implements [http.Handler].
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	e := event{}
	_ = json.Unmarshal(body, &e)
	r.mu.Lock()
	r.tried++
	status, silent := r.status, r.silent
	if status == http.StatusOK && silent == nil {
		r.got = append(r.got, e)
	}
	r.mu.Unlock()
	if silent != nil {
		<-silent
	}
	w.WriteHeader(status)
}

func (r *receiver) answers(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func (r *receiver) tries() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tried
}

// told are the messages, without those that have the identity of an earlier one.
func (r *receiver) told() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var told, ids []string
	for i := range r.got {
		e := &r.got[i]
		if slices.Contains(ids, e.ID) {
			continue
		}
		text := e.Data.Headline
		if e.Data.Sentence != "" {
			text += ": " + e.Data.Sentence
		}
		told, ids = append(told, text), append(ids, e.ID)
	}
	return told
}

// world is a namespace of its own, and a user in it who writes statuses, as the rings do.
type world struct {
	t         *testing.T
	client    client.Client
	namespace string
	requests  *fault.Injector
	receiver  *receiver
	options   notify.Options
	clock     *barrier.Clock
	barrier   *barrier.Barrier
	// as is how the manager connects; by default it may do anything.
	as *rest.Config
	// meanwhile is done again and again while something is waited for, where managers stop at
	// their writes. Nil if they do not, and nothing but the barrier is waited for.
	meanwhile func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return newWorldNow(t)
}

// newWorldNow is newWorld for a test that others wait for.
func newWorldNow(t *testing.T) *world {
	t.Helper()
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, namespace: testenv.Namespace(t), requests: fault.New(), receiver: newReceiver(t), as: testenv.Shared().Config(), clock: &barrier.Clock{}}
	if w.client, err = client.New(testenv.Shared().Config(), client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	hosts, err := outbound.ParseHosts([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	w.barrier = barrier.New(w.client, w.clock)
	w.options = notify.Options{Now: w.clock.Now, Rings: append(manager.Rings(), manager.RingFleet), Hosts: hosts}
	objects, err := manifests.KindsOf(w.options.Rings)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Kinds(t, w.client, objects)
	testenv.KnownReasons(t, w.client, w.namespace, &v1alpha1.NotifierList{})
	w.secret(map[string]string{"address": w.receiver.url})
	return w
}

// manage runs the controller alone, so that no ring changes the statuses.
func (w *world) manage(inj *fault.Injector, others ...string) (stop func()) {
	w.t.Helper()
	return w.barrier.Managed(w.t, inj, func(ctx context.Context, log logr.Logger, m *barrier.Manager) error {
		yes, namespaces := true, map[string]cache.Config{w.namespace: {}}
		for _, other := range others {
			namespaces[other] = cache.Config{}
		}
		o := ctrl.Options{
			Scheme: w.client.Scheme(), Logger: log, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
			Cache: cache.Options{DefaultNamespaces: namespaces}, Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &yes}},
			Controller: controllers.Controller{SkipNameValidation: &yes},
		}
		mgr, err := ctrl.NewManager(inj.Wrap(w.as), o)
		if err != nil {
			return err
		}
		mgr = m.Observed(mgr, o.Cache)
		if err := errors.Join(notify.Setup(ctx, mgr, w.options), mgr.Start(ctx)); ctx.Err() == nil {
			return err
		}
		return nil // a stop while it starts is no failure, as in package manager
	})
}

func (w *world) secret(data map[string]string) {
	w.t.Helper()
	s := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "channel"}, StringData: data}
	testenv.Apply(w.t, w.client, s)
}

// notifier makes a Notifier, given as YAML.
func (w *world) notifier(name, spec string) {
	w.t.Helper()
	if err := w.client.Create(w.t.Context(), w.newNotifier(name, spec)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) newNotifier(name, spec string) *v1alpha1.Notifier {
	w.t.Helper()
	n := &v1alpha1.Notifier{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	n.Spec.SecretRef.Name = "channel"
	if err := yaml.UnmarshalStrict([]byte(spec), &n.Spec); err != nil {
		w.t.Fatal(spec, err)
	}
	return n
}

func (w *world) get(name string) *v1alpha1.Notifier {
	w.t.Helper()
	n := &v1alpha1.Notifier{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// says makes sure that the condition Ready of a Notifier is "STATUS REASON: MESSAGE", about its
// present spec, and nothing is pending unless it is not ready.
func (w *world) says(name, want string) {
	w.t.Helper()
	w.once(func() error {
		n := w.get(name)
		c := apimeta.FindStatusCondition(n.Status.Conditions, "Ready")
		if c == nil || n.Status.ObservedGeneration != n.Generation {
			return errors.New("it says nothing")
		}
		if got := fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message); got != want {
			return fmt.Errorf("it says %s, want %s", got, want)
		}
		return nil
	})
}

const (
	fine      = "True Notifying: messages are sent to the address in Secret channel"
	suspended = "True Suspended: no message is sent: spec.suspend is true"
)

// tells makes sure that the receiver was reported exactly this.
func (w *world) tells(want ...string) {
	w.t.Helper()
	w.once(func() error { return w.reported(want...) })
}

func (w *world) reported(want ...string) error {
	if got := w.receiver.told(); !slices.Equal(got, want) {
		return fmt.Errorf("told %q, want %q", got, want)
	}
	return nil
}

// once checks at the barrier, or again and again where managers stop.
func (w *world) once(check func() error) {
	w.t.Helper()
	if w.meanwhile != nil {
		testenv.Eventually(w.t, func(context.Context) error {
			w.meanwhile()
			return check()
		})
		return
	}
	w.barrier.Wait(w.t)
	if err := check(); err != nil {
		w.t.Error(err)
	}
}

// rests makes sure that neither a write nor a request follows from a change.
func (w *world) rests(change func()) {
	w.t.Helper()
	w.barrier.Wait(w.t)
	w.requests.Reset()
	tried := w.receiver.tries()
	change()
	w.barrier.Wait(w.t)
	if writes, n := w.requests.Writes(), w.receiver.tries()-tried; len(writes)+n > 0 {
		w.t.Errorf("%d messages about nothing, and writes: %+v", n, writes)
	}
}

// group makes a RolloutGroup, or writes its status: a history of outcomes, the oldest first, and
// why it is stalled.
func (w *world) group(name, stalled string, outcomes ...string) {
	w.t.Helper()
	g := &v1alpha1.RolloutGroup{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(g), g)
	if client.IgnoreNotFound(err) == nil && err != nil {
		err = w.client.Create(w.t.Context(), g)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	was := slices.Clone(g.Status.History)
	slices.Reverse(was)
	g.Status.History = nil
	for i, outcome := range outcomes {
		r := v1alpha1.Rollout{Number: int64(i + 1), StartedAt: metav1.NowMicro(), Outcome: outcome}
		ended := metav1.NowMicro()
		switch {
		case i < len(was) && was[i].Outcome == outcome:
			r = was[i]
		case i < len(was):
			r.StartedAt, r.FinishedAt = was[i].StartedAt, &ended
		case outcome == "Complete": // long ago
			ended = metav1.NewMicroTime(ended.Add(-time.Hour))
			r.StartedAt, r.FinishedAt = ended, &ended
		default:
			r.FinishedAt = &ended
		}
		if outcome == "Running" {
			r.FinishedAt = nil
		}
		g.Status.History = slices.Insert(g.Status.History, 0, r)
	}
	c := metav1.Condition{Type: "Stalled", Status: metav1.ConditionFalse, Reason: "Progressing"}
	if stalled != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "GateRefused", stalled
	}
	apimeta.SetStatusCondition(&g.Status.Conditions, c)
	if err := w.client.Status().Update(w.t.Context(), g); err != nil {
		w.t.Fatal(err)
	}
}
