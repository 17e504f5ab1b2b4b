package fleet_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
)

const (
	// atOnce is how many requests the world makes at a time.
	atOnce = 16
	// touched is how many clusters are written to at rest, with no effect on a rollout.
	touched = 20
)

func TestMain(m *testing.M) {
	if os.Getenv(kubeconfigVariable) != "" {
		os.Exit(child())
	}
	testenv.Main(m, testenv.Options{})
}

// world is a hub with simulated clusters, and a witness that watches.
type world struct {
	t         *testing.T
	n         int
	client    client.WithWatch
	namespace string
	requests  *fault.Injector
	watched   *witness
}

func newWorld(t *testing.T, n int) *world {
	t.Helper()
	w := emptyWorld(t, n)
	start := time.Now()
	w.each(n, w.cluster)
	fmt.Printf("| %d clusters are made | %.1f s |\n", n, time.Since(start).Seconds())
	w.watched = watched(t, w.client, w.namespace)
	play(t, w.client, w.namespace)
	return w
}

// emptyWorld is a hub that has no clusters yet.
func emptyWorld(t *testing.T, n int) *world {
	t.Helper()
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	cfg := testenv.Shared().Config()
	cfg.QPS = -1
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	testenv.InstallKinds(t, c, "../../charts/spillway/generated/fleet/fleet*.yaml", "../../charts/spillway/generated/fleet/spillway*.yaml", "../../charts/spillway/generated/gates/spillway*.yaml")
	return &world{t: t, n: n, client: c, namespace: testenv.Namespace(t), requests: fault.New()}
}

// cluster makes one, by a Secret.
func (w *world) cluster(i int) {
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.namespace, Name: cluster.SecretName(fmt.Sprintf("c%d", i)), Labels: map[string]string{"spillway.dev/cluster": "true"},
	}})
}

// touch writes to clusters what affects no rollout.
func (w *world) touch() {
	w.each(touched, func(i int) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: cluster.SecretName(fmt.Sprintf("c%d", i))}}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"touched":"true"}}}`))
		if err := w.client.Patch(w.t.Context(), secret, patch); err != nil {
			w.t.Error(err)
		}
	})
}

func (w *world) each(n int, f func(i int)) {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range n {
		group.Go(func() error { f(i); return nil })
	}
	_ = group.Wait() // none fails
}

func (w *world) create(obj client.Object) {
	if err := w.client.Create(w.t.Context(), obj); err != nil {
		w.t.Error(err)
	}
}

func module(namespace string) *v1alpha1.Module {
	return &v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app}, Spec: spec("v1")}
}

// edit has the module say another tag.
func (w *world) edit(tag string) {
	w.t.Helper()
	m := module(w.namespace)
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"sync":{"source":{"git":{"version":{"tag":%q}}}}}}}}`, tag)
	if err := w.client.Patch(w.t.Context(), m, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		w.t.Fatal(err)
	}
}

// manage runs a manager until stop.
func (w *world) manage() (stop func()) {
	w.t.Helper()
	return testenv.Managed(w.t, w.requests, func(ctx context.Context, _ logr.Logger) error {
		return manager.Run(ctx, w.requests.Wrap(testenv.Shared().Config()), options(w.namespace))
	})
}

// options are those of a hub on which no manager carries out what is assigned.
func options(namespace string) manager.Options {
	return manager.Options{
		Rings: []string{manager.RingFleet}, Namespaces: []string{namespace}, MetricsAddress: "0", ProbeAddress: "0", Version: "bench", Log: logr.Discard(),
		Fleet: hub.Options{Now: time.Now, Assemblages: func(context.Context, ctrl.Manager, *cluster.Directory) error { return nil }},
	}
}

// complete waits until all clusters run a tag, however long it takes as long as it
// goes on.
func (w *world) complete(tag string) {
	w.t.Helper()
	want := fmt.Sprintf("%d/%d", w.n, w.n)
	for last := ""; last != want; {
		w.until(func() bool { s := w.watched.status(); return s.Clusters != last && s.TargetRevision == revision(tag) })
		last = w.watched.status().Clusters
	}
	w.until(func() bool {
		s := w.watched.status()
		return s.Phase == "Complete" && s.CurrentRevision == revision(tag) && len(s.Moves) == 0
	})
}

func (w *world) until(is func() bool) {
	w.t.Helper()
	testenv.Eventually(w.t, func(context.Context) error {
		if s := w.watched.status(); !is() {
			return fmt.Errorf("it does not go on: %s %s %s", s.Phase, s.Clusters, s.WaitingFor)
		}
		return nil
	})
}

// settles waits until what had still to be said has been.
func (w *world) settles() {
	for before := -1; before != len(w.requests.Requests()); {
		before = len(w.requests.Requests())
		<-time.After(time.Second)
	}
}
