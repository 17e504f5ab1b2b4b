package proxy_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/agent"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/fleet/proxy"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
)

// The last of the workload clusters is the one that goes away: no test uses it that
// minds. On the one before, Spillway is not installed.
const (
	workloads = 5
	bare      = workloads - 2
	fragile   = workloads - 1
)

func TestMain(m *testing.M) { testenv.MainFleet(m, workloads) }

var installed sync.Once

// world is a namespace of the same name on the hub and on the workload clusters, which
// are c0, c1 and so on, and a user of all of them.
type world struct {
	*testing.T

	hub       client.Client
	namespace string
	// plane is the control plane of the hub.
	plane *controlplane.ControlPlane
	// url is that of a repository of its own.
	url string
	// faults is the transport of the hub's manager that was started last.
	faults *fault.Injector
	stop   func()
	// user is as whom the hub's manager acts, the administrator if it is empty.
	user string
	// onlyHub keeps requests to the workload clusters from going through faults.
	onlyHub bool
}

func newClient(t testing.TB, cp *controlplane.ControlPlane) client.Client {
	t.Helper()
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cp.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return newQuietWorld(t)
}

// newQuietWorld is for a test that others wait for.
func newQuietWorld(t *testing.T) *world {
	t.Helper()
	hub := newClient(t, testenv.Shared())
	installed.Do(func() {
		testenv.InstallKinds(t, hub, "../../../charts/spillway/generated/fleet/fleet*.yaml", "../../../charts/spillway/generated/fleet/spillway*.yaml", "../../../charts/spillway/generated/gates/spillway*.yaml")
		testenv.InstallKinds(t, newClient(t, testenv.Workload(bare)), "../../../charts/spillway/generated/fleet/fleet*.yaml", "../../../charts/spillway/generated/fleet/spillway*.yaml", "../../../charts/spillway/generated/gates/spillway*.yaml")
		for i := range workloads {
			if i != bare {
				testenv.InstallKinds(t, newClient(t, testenv.Workload(i)), "../../../charts/spillway/generated/assemblage/fleet*.yaml")
			}
		}
	})
	w := &world{T: t, hub: hub, plane: testenv.Shared(), namespace: testenv.Namespace(t)}
	testenv.KnownReasons(t, hub, w.namespace, &v1alpha1.ProxyAssemblageList{})
	w.url = "https://git.test/" + w.namespace
	return w
}

// on is a client of a workload cluster.
func (w *world) on(i int) client.Client { return newClient(w.T, testenv.Workload(i)) }

// join makes a workload cluster known on the hub, and runs Spillway there.
func (w *world) join(i int) {
	w.Helper()
	w.create(w.hub, testenv.KubeconfigSecret(w.T, w.namespace, fmt.Sprintf("c%d", i), testenv.Workload(i)))
	if i != bare {
		w.serve(i)
	}
}

// serve runs Spillway on a workload cluster.
func (w *world) serve(i int) (stop func()) {
	w.Helper()
	return w.run(fault.New(), testenv.Workload(i).Config(), manager.Options{
		Rings: []string{manager.RingAssemblage}, Namespaces: []string{w.namespace}, Assemblage: agent.Options{Now: time.Now},
	})
}

// manage starts a manager on the hub.
func (w *world) manage() { w.manageWith(fault.New()) }

func (w *world) manageWith(faults *fault.Injector) {
	w.Helper()
	w.faults = faults
	config, wrap := w.plane.Config(), faults.Wrap
	if w.user != "" {
		config = w.plane.ConfigAs(w.user)
	}
	if w.onlyHub {
		wrap = nil
	}
	w.stop = w.run(faults, config, manager.Options{
		Rings: []string{manager.RingFleet}, Namespaces: []string{w.namespace},
		Fleet: hub.Options{Now: time.Now, Looks: true, Assemblages: func(ctx context.Context, mgr ctrl.Manager, clusters *cluster.Directory) error {
			return proxy.SetupHub(ctx, mgr, proxy.Options{
				Namespaces: []string{w.namespace}, Now: time.Now, Directory: clusters, Wrap: wrap, BackOff: 50 * time.Millisecond, BackOffMax: 500 * time.Millisecond,
			})
		}},
	})
}

// run runs a manager until the end of the test, or until it is stopped.
func (w *world) run(faults *fault.Injector, config *rest.Config, o manager.Options) (stop func()) {
	w.Helper()
	return testenv.Managed(w, faults, func(ctx context.Context, log logr.Logger) error {
		o.MetricsAddress, o.ProbeAddress, o.Version, o.Log = "0", "0", "test", log
		return manager.Run(ctx, faults.Wrap(config), o)
	})
}

func (w *world) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: w.namespace, Name: name}
}

func (w *world) create(c client.Client, obj client.Object) {
	w.Helper()
	if err := c.Create(w.Context(), obj); err != nil {
		w.Fatal(err)
	}
}

func (w *world) remove(c client.Client, obj client.Object, name string) {
	w.Helper()
	obj.SetNamespace(w.namespace)
	obj.SetName(name)
	if err := c.Delete(w.Context(), obj); err != nil {
		w.Fatal(err)
	}
}

func (w *world) gone(c client.Client, obj client.Object, name string) {
	w.Helper()
	testenv.Eventually(w.T, func(ctx context.Context) error {
		if err := c.Get(ctx, w.key(name), obj); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%T %s still exists: %w", obj, name, err)
		}
		return nil
	})
}

// publish has a tag of the repository consist of a ConfigMap that says it.
func (w *world) publish(tag string) string {
	w.Helper()
	return w.publishText(tag, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, namespace: %s}\ndata: {version: %s, where: '${where}'}\n", w.namespace, tag))
}

func (w *world) publishText(tag, manifest string) string {
	w.Helper()
	return testenv.Publish(w.T, w.url, tag, map[string]string{"all.yaml": manifest})
}

const inCluster = "controlPlaneBindings: [{name: place, value: $(CLUSTER_NAME)}]\npackage: {kustomize: {substitute: {where: 'in $(place)'}}}"

// sync is the YAML of a sync of a tag of the repository.
func (w *world) sync(name, tag, more string) string {
	return fmt.Sprintf("name: %s\nrevision: %s-%s\nsource: {git: {url: %q, version: {tag: %s}}}\n%s", name, name, tag, w.url, tag, more)
}

func parse[T any](w *world, texts []string) []T {
	w.Helper()
	all := make([]T, len(texts))
	for i, text := range texts {
		if err := yaml.UnmarshalStrict([]byte(text), &all[i]); err != nil {
			w.Fatal(err)
		}
	}
	return all
}

// write creates an object, or changes it.
func (w *world) write(obj client.Object, change func()) {
	w.Helper()
	testenv.Eventually(w.T, func(ctx context.Context) error {
		err := w.hub.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		change()
		if err != nil {
			return w.hub.Create(ctx, obj)
		}
		return w.hub.Update(ctx, obj)
	})
}

// assign has a ProxyAssemblage of a cluster have these syncs.
func (w *world) assign(cluster string, syncs ...string) {
	w.Helper()
	p := &v1alpha1.ProxyAssemblage{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: cluster}}
	w.write(p, func() {
		p.Spec.KubeconfigRef.Name, p.Spec.Assemblage.Syncs = cluster+"-kubeconfig", parse[v1alpha1.ProxySync](w, syncs)
	})
}

// bootstrap has a RemoteAssemblage of a cluster have these syncs.
func (w *world) bootstrap(cluster string, syncs ...string) {
	w.Helper()
	r := &v1alpha1.RemoteAssemblage{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: cluster}}
	w.write(r, func() {
		r.Spec.KubeconfigRef.Name, r.Spec.Syncs = cluster+"-kubeconfig", parse[v1alpha1.RemoteSync](w, syncs)
	})
}

// status is that of an assemblage of the hub.
func (w *world) status(obj client.Object, name string) *v1alpha1.AssemblageStatus {
	w.Helper()
	if err := w.hub.Get(w.Context(), w.key(name), obj); err != nil {
		w.Fatal(err)
	}
	switch a := obj.(type) {
	case *v1alpha1.ProxyAssemblage:
		return &a.Status
	case *v1alpha1.RemoteAssemblage:
		return &a.Status
	default:
		return nil
	}
}

// becomes waits until a sync of an assemblage of the hub is in a state, and says this.
func (w *world) becomes(obj client.Object, name, revision string, state v1alpha1.State, saying string) v1alpha1.SyncStatus {
	w.Helper()
	var found v1alpha1.SyncStatus
	testenv.Eventually(w.T, func(context.Context) error {
		status := w.status(obj, name)
		for _, s := range status.Syncs {
			if s.Revision == revision && s.State == state && strings.Contains(s.Message, saying) {
				found = s
				return nil
			}
		}
		return fmt.Errorf("the status is %+v", status)
	})
	return found
}

func proxied() *v1alpha1.ProxyAssemblage { return &v1alpha1.ProxyAssemblage{} }
func remote() *v1alpha1.RemoteAssemblage { return &v1alpha1.RemoteAssemblage{} }

// data waits until the ConfigMap on a cluster has this data; nil if it is to be gone.
func (w *world) data(i int, want map[string]string) {
	w.Helper()
	c := w.on(i)
	testenv.Eventually(w.T, func(ctx context.Context) error {
		cm := &corev1.ConfigMap{}
		if err := c.Get(ctx, w.key("app"), cm); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if !maps.Equal(cm.Data, want) {
			return fmt.Errorf("it has %v, not %v", cm.Data, want)
		}
		return nil
	})
}

// has waits until there are so many Kustomizations and sources on a cluster.
func (w *world) has(c client.Client, kustomizations, sources int) {
	w.Helper()
	testenv.Eventually(w.T, func(ctx context.Context) error {
		ks, gits := &kustomizev1.KustomizationList{}, &sourcev1.GitRepositoryList{}
		for _, list := range []client.ObjectList{ks, gits} {
			if err := c.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
				return err
			}
		}
		if len(ks.Items) != kustomizations || len(gits.Items) != sources {
			return fmt.Errorf("there are %d Kustomizations and %d sources", len(ks.Items), len(gits.Items))
		}
		return nil
	})
}

func namespaceOf(w *world) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
}

// concluded waits until an assemblage of the hub says this about itself.
func (w *world) concluded(obj client.Object, name, saying string) {
	w.Helper()
	testenv.Eventually(w.T, func(context.Context) error {
		status := w.status(obj, name)
		for _, c := range status.Conditions {
			if c.Type == "Ready" && strings.Contains(c.Message, saying) {
				return nil
			}
		}
		return fmt.Errorf("the conditions are %+v", status.Conditions)
	})
}
