package ring_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/spillway-dev/spillway/examples/ring"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

func TestMain(m *testing.M) { testenv.Main(m, testenv.Options{}) }

const revision = "example.spillway.dev/revision"

// world is a namespace with a rollout and its members.
type world struct {
	t         *testing.T
	client    client.Client
	namespace string
}

func newWorld(t *testing.T, members ...string) *world {
	t.Helper()
	c, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, client: c, namespace: testenv.Namespace(t)}
	w.create("app", map[string]string{"example.spillway.dev/rollout": "app"})
	for _, name := range members {
		w.create(name, map[string]string{"example.spillway.dev/member": "app"})
	}
	return w
}

func (w *world) create(name string, labels map[string]string) {
	w.t.Helper()
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.namespace, Name: name, Labels: labels, Annotations: map[string]string{revision: "v1"},
	}}
	if err := w.client.Create(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
}

// manage runs a manager with the ring.
func (w *world) manage() (stop func()) {
	return testenv.Managed(w.t, fault.New(), func(ctx context.Context, log logr.Logger) error {
		mgr, err := ctrl.NewManager(testenv.Shared().Config(), ctrl.Options{
			Logger: log, Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
			Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{w.namespace: {}}},
		})
		if err != nil {
			return fmt.Errorf("make the manager: %w", err)
		}
		if err := ring.Setup(mgr, time.Now); err != nil {
			return fmt.Errorf("set up: %w", err)
		}
		return mgr.Start(ctx)
	})
}

func (w *world) patch(name, patch string) {
	w.t.Helper()
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	if err := w.client.Patch(w.t.Context(), c, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) want(rev string) {
	w.t.Helper()
	w.patch("app", fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, revision, rev))
}

// revisions are those of the members, by name.
func (w *world) revisions(ctx context.Context) (string, error) {
	list := &corev1.ConfigMapList{}
	if err := w.client.List(ctx, list, client.InNamespace(w.namespace), client.HasLabels{"example.spillway.dev/member"}); err != nil {
		return "", fmt.Errorf("list: %w", err)
	}
	var revisions []string
	for i := range list.Items {
		revisions = append(revisions, list.Items[i].Name+"="+list.Items[i].Annotations[revision])
	}
	slices.Sort(revisions)
	return strings.Join(revisions, " "), nil
}

func (w *world) eventually(want string) {
	w.t.Helper()
	testenv.Eventually(w.t, func(ctx context.Context) error {
		got, err := w.revisions(ctx)
		if err == nil && got != want {
			err = fmt.Errorf("%s, want %s", got, want)
		}
		return err
	})
}

// A revision gets to all members, and each is reported.
func TestRollout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c")
	w.manage()
	w.want("v2")
	w.eventually("a=v2 b=v2 c=v2")
	testenv.Eventually(t, func(ctx context.Context) error {
		events := &eventsv1.EventList{}
		if err := w.client.List(ctx, events, client.InNamespace(w.namespace)); err != nil {
			return fmt.Errorf("list Events: %w", err)
		}
		if len(events.Items) != 3 {
			return fmt.Errorf("%d Events, want 3", len(events.Items))
		}
		return nil
	})
}

// The next member waits for one that is broken, also when another manager takes over.
func TestBrokenMemberStopsTheRollout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c")
	w.patch("b", `{"data":{"state":"broken"}}`)
	stop := w.manage()
	w.want("v2")
	w.eventually("a=v1 b=v2 c=v1") // what is broken goes first: that takes nothing away
	stop()
	w.manage()
	w.want("v3")
	w.eventually("a=v1 b=v3 c=v1") // the other manager has decided, and moved only what is broken
	w.patch("b", `{"data":{"state":"ready"}}`)
	w.eventually("a=v3 b=v3 c=v3")
}

// Two managers at the same time come to the same end.
func TestTwoManagers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c", "d")
	w.manage()
	w.manage()
	w.want("v2")
	w.eventually("a=v2 b=v2 c=v2 d=v2")
	w.want("v3")
	w.eventually("a=v3 b=v3 c=v3 d=v3")
}
