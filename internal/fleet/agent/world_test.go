package agent_test

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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/agent"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
)

func TestMain(m *testing.M) { testenv.MainFleet(m, 0) }

// world is a namespace of a workload cluster in which Flux runs, and a user in it.
type world struct {
	*testing.T

	cp        *controlplane.ControlPlane
	client    client.Client
	namespace string
	// url is that of a repository of its own.
	url string
	// faults is the transport of the manager that was started last.
	faults *fault.Injector
	stop   func()
}

var installed sync.Once

// kinds are those of Spillway on a workload cluster.
const kinds = "../../../charts/spillway/generated/assemblage/fleet*.yaml"

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

// newWorld is a world without a manager.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return newQuietWorld(t)
}

// newQuietWorld is for a test that others wait for.
func newQuietWorld(t *testing.T) *world {
	t.Helper()
	c := newClient(t, testenv.Shared())
	installed.Do(func() { testenv.InstallKinds(t, c, kinds) })
	w := &world{T: t, cp: testenv.Shared(), client: c, namespace: testenv.Namespace(t)}
	testenv.KnownReasons(t, c, w.namespace, &v1alpha1.AssemblageList{})
	w.url = "https://git.test/" + w.namespace
	return w
}

// manage starts a manager, which is stopped at the end of the test, or by w.stop.
func (w *world) manage() { w.manageWith(fault.New()) }

func (w *world) manageWith(faults *fault.Injector) {
	w.Helper()
	w.faults = faults
	w.stop = run(w.T, faults, w.cp.Config(), manager.Options{
		Rings: []string{manager.RingAssemblage}, Namespaces: []string{w.namespace}, Assemblage: agent.Options{Now: time.Now},
	})
}

// run runs a manager until the end of the test, or until it is stopped.
func run(t *testing.T, faults *fault.Injector, config *rest.Config, o manager.Options) (stop func()) {
	t.Helper()
	return testenv.Managed(t, faults, func(ctx context.Context, log logr.Logger) error {
		o.MetricsAddress, o.ProbeAddress, o.Version, o.Log = "0", "0", "test", log
		return manager.Run(ctx, faults.Wrap(config), o)
	})
}

// configMap is a manifest of one in the namespace of the world.
func (w *world) configMap(name, data string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '%s', namespace: %s}\ndata: %s\n", name, w.namespace, data)
}

// publish has a tag of the repository consist of a ConfigMap that says it.
func (w *world) publish(tag string) string {
	w.Helper()
	return w.publishFiles(tag, map[string]string{"cm.yaml": w.configMap("app", "{version: "+tag+", region: '${region}'}")})
}

func (w *world) publishFiles(tag string, files map[string]string) string {
	w.Helper()
	return testenv.Publish(w.T, w.url, tag, files)
}

// sync is a sync of a tag of the repository, with changes of its YAML.
func (w *world) sync(name, tag, more string) v1alpha1.NamedSync {
	w.Helper()
	s := v1alpha1.NamedSync{}
	text := fmt.Sprintf("name: %s\nrevision: %s-%s\nsource: {git: {url: %q, version: {tag: %s}}}\n%s", name, name, tag, w.url, tag, more)
	if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
		w.Fatal(err)
	}
	return s
}

// bucket is a sync of what a bucket has under a prefix, which is published, too.
func (w *world) bucket(prefix string) v1alpha1.NamedSync {
	w.Helper()
	testenv.Publish(w.T, "s3://s3.test/"+w.namespace, prefix, map[string]string{"cm.yaml": w.configMap("app", "{version: "+prefix+"}")})
	s := v1alpha1.NamedSync{Assignment: v1alpha1.Assignment{Name: "shop", Revision: "shop-" + prefix}}
	s.Source = &v1alpha1.Source{Bucket: &v1alpha1.BucketSource{Endpoint: "s3.test", BucketName: w.namespace, Prefix: prefix}}
	w.adds(&s, "source: {bucket: {spec: {region: eu}}}")
	return s
}

// assign makes an assemblage, or changes it, to have these syncs.
func (w *world) assign(name string, syncs ...v1alpha1.NamedSync) {
	w.Helper()
	testenv.Eventually(w.T, func(ctx context.Context) error {
		a := &v1alpha1.Assemblage{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
		err := w.client.Get(ctx, client.ObjectKeyFromObject(a), a)
		if apierrors.IsNotFound(err) {
			a.Spec.Syncs = syncs
			return w.client.Create(ctx, a)
		}
		if err != nil {
			return err
		}
		a.Spec.Syncs = syncs
		return w.client.Update(ctx, a)
	})
}

func (w *world) assemblage(name string) *v1alpha1.Assemblage {
	w.Helper()
	a := &v1alpha1.Assemblage{}
	if err := w.client.Get(w.Context(), w.key(name), a); err != nil {
		w.Fatal(err)
	}
	return a
}

func (w *world) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: w.namespace, Name: name}
}

// becomes waits until a sync is in a state at a revision, and says this.
func (w *world) becomes(name, sync, revision string, state v1alpha1.State, saying string) v1alpha1.SyncStatus {
	w.Helper()
	var found v1alpha1.SyncStatus
	testenv.Eventually(w.T, func(context.Context) error {
		a := w.assemblage(name)
		for _, s := range a.Status.Syncs {
			if s.Name == sync && s.Revision == revision && s.State == state && strings.Contains(s.Message, saying) {
				found = s
				return nil
			}
		}
		return fmt.Errorf("the status is %+v", a.Status)
	})
	return found
}

// data waits until a ConfigMap has this data; nil if it is to be gone.
func (w *world) data(name string, want map[string]string) {
	w.Helper()
	testenv.Eventually(w.T, func(ctx context.Context) error {
		cm := &corev1.ConfigMap{}
		if err := w.client.Get(ctx, w.key(name), cm); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if !maps.Equal(cm.Data, want) {
			return fmt.Errorf("ConfigMap %s has %v, not %v", name, cm.Data, want)
		}
		return nil
	})
}

func (w *world) create(obj client.Object) {
	w.Helper()
	if err := w.client.Create(w.Context(), obj); err != nil {
		w.Fatal(err)
	}
}

func (w *world) remove(obj client.Object, name string) {
	w.Helper()
	obj.SetNamespace(w.namespace)
	obj.SetName(name)
	if err := w.client.Delete(w.Context(), obj); err != nil {
		w.Fatal(err)
	}
}

func (w *world) gone(obj client.Object, name string) {
	w.Helper()
	testenv.Eventually(w.T, func(ctx context.Context) error {
		if err := w.client.Get(ctx, w.key(name), obj); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%T %s still exists: %w", obj, name, err)
		}
		return nil
	})
}

// flux are the names of the Kustomizations and of the sources, sorted.
func (w *world) flux() (kustomizations, sources []string) {
	w.Helper()
	ks, gits, ocis, buckets := &kustomizev1.KustomizationList{}, &sourcev1.GitRepositoryList{}, &sourcev1.OCIRepositoryList{}, &sourcev1.BucketList{}
	for _, list := range []client.ObjectList{ks, gits, ocis, buckets} {
		if err := w.client.List(w.Context(), list, client.InNamespace(w.namespace)); err != nil {
			w.Fatal(err)
		}
	}
	for i := range ks.Items {
		kustomizations = append(kustomizations, ks.Items[i].Name)
	}
	for i := range gits.Items {
		sources = append(sources, gits.Items[i].Name)
	}
	for i := range ocis.Items {
		sources = append(sources, ocis.Items[i].Name)
	}
	for i := range buckets.Items {
		sources = append(sources, buckets.Items[i].Name)
	}
	return kustomizations, sources
}

// has waits until there are so many Kustomizations and sources.
func (w *world) has(kustomizations, sources int) {
	w.Helper()
	testenv.Eventually(w.T, func(context.Context) error {
		ks, ss := w.flux()
		if len(ks) != kustomizations || len(ss) != sources {
			return fmt.Errorf("there are %v and %v", ks, ss)
		}
		return nil
	})
}

func (w *world) kustomization(name string) *kustomizev1.Kustomization {
	w.Helper()
	k := &kustomizev1.Kustomization{}
	if err := w.client.Get(w.Context(), w.key(name), k); err != nil {
		w.Fatal(err)
	}
	return k
}
