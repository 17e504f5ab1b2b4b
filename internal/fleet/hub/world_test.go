package hub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/barrier"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/ring"
)

// TestMain lets more tests run at a time than there are processors: they wait for
// controllers, most of the time.
func TestMain(m *testing.M) {
	testenv.Parallel(6)
	testenv.Main(m, testenv.Options{})
}

const app = "app"

// world is a namespace of its own on the hub, a user in it, and a player who does
// with assemblages what their controllers do.
type world struct {
	t         *testing.T
	client    client.WithWatch
	namespace string
	options   hub.Options
	// requests are what the managers of this world have asked of the API server.
	requests *fault.Injector
	player   *player
	// clock is that of the managers, which the barrier waits for, and for the player.
	clock   *barrier.Clock
	barrier *barrier.Barrier
	// disturbed is true while a manager lags, or is stopped and replaced: what is waited for then
	// is what is to come, as there is no barrier.
	disturbed bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return newWorldNow(t)
}

// newWorldNow is newWorld for a test that others wait for.
func newWorldNow(t *testing.T) *world {
	t.Helper()
	if err := installKinds(); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, client: newClient(t), namespace: testenv.Namespace(t), requests: fault.New(), clock: &barrier.Clock{}}
	w.barrier = barrier.New(w.client, w.clock)
	w.options = hub.Options{Namespaces: []string{w.namespace}, Now: w.clock.Now, StatusDelay: 200 * time.Millisecond}
	w.options.Assemblages = func(context.Context, ctrl.Manager, *cluster.Directory) error { return nil } // the player does
	testenv.KnownReasons(t, w.client, w.namespace, &v1alpha1.ModuleList{}, &v1alpha1.BootstrapModuleList{})
	w.player = newPlayer(t, w.client, w.namespace)
	w.barrier.Also(w.player.done)
	return w
}

func newClient(t *testing.T) client.WithWatch {
	t.Helper()
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(testenv.Shared().Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// installKinds makes the kinds of the ring known to the API server, and as much of
// Cluster API's Cluster as the hub reads.
var installKinds = sync.OnceValue(func() error {
	clusters := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(clusterKind), clusters); err != nil {
		return err
	}
	_, err := envtest.InstallCRDs(testenv.Shared().Config(), envtest.CRDInstallOptions{
		Paths: []string{"../../../charts/spillway/generated/fleet", "../../../charts/spillway/generated/gates"}, CRDs: []*apiextensionsv1.CustomResourceDefinition{clusters}, ErrorIfPathMissing: true,
	})
	return err
})

const clusterKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusters.cluster.x-k8s.io}
spec:
  group: cluster.x-k8s.io
  names: {kind: Cluster, listKind: ClusterList, plural: clusters, singular: cluster}
  scope: Namespaced
  versions:
  - name: v1beta2
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// manage starts a manager, which is stopped at the end of the test or by what is returned.
func (w *world) manage() (stop func()) {
	w.t.Helper()
	return w.managed(w.requests)
}

// managed is manage with a transport.
func (w *world) managed(inj *fault.Injector, change ...func(*manager.Options)) (stop func()) {
	w.t.Helper()
	o := manager.Options{
		Rings: []string{manager.RingFleet}, Namespaces: w.options.Namespaces, Fleet: w.options, Config: config.Options{Now: w.clock.Now},
	}
	for _, c := range change {
		c(&o)
	}
	return w.barrier.Run(w.t, testenv.Shared().Config(), inj, o)
}

// clusters makes clusters, each by a Secret with a kubeconfig, where there is no
// Cluster API: "name key=value ...".
func (w *world) clusters(lines ...string) {
	w.t.Helper()
	for _, line := range lines {
		name, labels := parse(line)
		labels["spillway.dev/cluster"] = "true"
		w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: cluster.SecretName(name), Labels: labels}, StringData: map[string]string{"value": "x"}})
	}
}

func parse(line string) (name string, labels map[string]string) {
	words := strings.Fields(line)
	labels = map[string]string{}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		labels[key] = value
	}
	return words[0], labels
}

// capiCluster makes a Cluster of Cluster API with a kubeconfig, and says whether its
// control plane has come up.
func (w *world) capiCluster(line string, initialized bool) {
	w.t.Helper()
	name, labels := parse(line)
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: cluster.SecretName(name)}, StringData: map[string]string{"value": "x"}})
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"controlPlaneEndpoint": map[string]any{"host": "x", "port": int64(1)}}}}
	u.SetGroupVersionKind(cluster.GVK)
	u.SetName(name)
	u.SetLabels(labels)
	w.create(u)
	w.initialize(name, initialized)
}

func (w *world) initialize(name string, initialized bool) {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(cluster.GVK)
	u.SetNamespace(w.namespace)
	u.SetName(name)
	patch := fmt.Sprintf(`{"status":{"initialization":{"controlPlaneInitialized":%v}}}`, initialized)
	if err := w.client.Status().Patch(w.t.Context(), u, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		w.t.Fatal(err)
	}
}

// create creates objects as a user does.
func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, obj := range objects {
		obj.SetNamespace(w.namespace)
		if err := w.client.Create(w.t.Context(), obj); err != nil {
			w.t.Fatal(err)
		}
	}
}

// module applies the module as a user does: everything in the spec but what is to
// run, which is a tag.
func (w *world) module(tag, spec string) {
	w.t.Helper()
	w.apply(model.KindModule, tag, spec)
}

func (w *world) apply(kind, tag, spec string) {
	w.t.Helper()
	w.applyAs(kind, app, tag, spec)
}

// applyAs is apply for a module of another name.
func (w *world) applyAs(kind, name, tag, spec string) {
	w.t.Helper()
	obj := &unstructured.Unstructured{}
	doc := fmt.Sprintf(`{spec: {%s, template: {spec: {sync: {source: {git: {url: "https://x.test/a", version: {tag: %q}}}}}}}}`, spec, tag)
	if err := yaml.Unmarshal([]byte(doc), &obj.Object); err != nil {
		w.t.Fatal(doc, err)
	}
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	obj.SetNamespace(w.namespace)
	obj.SetName(name)
	if err := w.client.Apply(w.t.Context(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("user"), client.ForceOwnership); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) get(obj client.Object, name string) error {
	return w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, obj)
}

func (w *world) patch(obj client.Object, name, patch string) {
	w.t.Helper()
	obj.SetNamespace(w.namespace)
	obj.SetName(name)
	if err := w.client.Patch(w.t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		w.t.Fatal(err)
	}
}

// status is that of the module.
func (w *world) status() *v1alpha1.ModuleStatus {
	w.t.Helper()
	m := &v1alpha1.Module{}
	if err := w.get(m, app); client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return &m.Status
}

// runs is the tag that each cluster is assigned, and a "!" if it does not run it:
// "a:v1 b:v2!". Clusters that are assigned nothing are left out.
func (w *world) runs() string {
	w.t.Helper()
	list := &v1alpha1.ProxyAssemblageList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	var words []string
	for i := range list.Items {
		if word := wordOf(&list.Items[i]); word != "" {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

func wordOf(p *v1alpha1.ProxyAssemblage) string {
	for _, s := range p.Spec.Assemblage.Syncs {
		if s.Name != app || s.Source == nil {
			continue
		}
		word := p.Name + ":" + s.Source.Git.Version.Tag + s.Source.Git.Version.Revision
		if isUp(p) {
			return word
		}
		return word + "!"
	}
	return ""
}

// isUp is true if the sync of the module has succeeded, at what it is assigned now.
func isUp(p *v1alpha1.ProxyAssemblage) bool {
	for _, s := range p.Spec.Assemblage.Syncs {
		for _, status := range p.Status.Syncs {
			if s.Name == app && status.Name == app {
				return status.State == v1alpha1.StateSucceeded && status.Revision == s.Revision && status.AssignedAt.Equal(s.AssignedAt)
			}
		}
	}
	return false
}

// eventually waits for what has no barrier.
func (w *world) eventually(check func() error) {
	w.t.Helper()
	testenv.Eventually(w.t, func(context.Context) error { return check() })
}

// then asserts once, when all is done that follows from what was written.
func (w *world) then(check func() error) {
	w.t.Helper()
	if w.disturbed || errors.Is(w.barrier.Passed(w.t.Context()), barrier.ErrNone) {
		w.eventually(check)
		return
	}
	w.barrier.Wait(w.t)
	if err := check(); err != nil {
		w.t.Fatal(err)
	}
}

// atRest steps the clock if nothing is left to do until then.
func (w *world) atRest(by time.Duration) {
	if w.barrier.Passed(w.t.Context()) == nil {
		w.clock.Step(by)
	}
}

// comes is that the clusters run something, as [world.runs] has it.
func (w *world) comes(want string) {
	w.t.Helper()
	w.then(func() error {
		if got := w.runs(); got != want {
			return fmt.Errorf("they run %q, want %q: %s", got, want, w.says())
		}
		return nil
	})
}

// complete is that the clusters run something and the module says that all is done.
func (w *world) complete(want string) {
	w.t.Helper()
	w.comes(want)
	w.then(func() error {
		s := w.status()
		if s.Phase != "Complete" || !apimeta.IsStatusConditionTrue(s.Conditions, ring.ConditionReady) || len(s.Moves) > 0 {
			return errors.New(w.says())
		}
		return nil
	})
}

// waits is that the module is in a phase and waits for something.
func (w *world) waits(phase, text string) {
	w.t.Helper()
	w.then(func() error {
		if s := w.status(); s.Phase != phase || !strings.Contains(s.WaitingFor, text) {
			return fmt.Errorf("want phase %s and %q: %s", phase, text, w.says())
		}
		return nil
	})
}

// says is what the status of the module says in short.
func (w *world) says() string {
	s := w.status()
	var rows []string
	for _, row := range s.Stages {
		rows = append(rows, fmt.Sprintf("%s %d/%d/%d %s %s", row.Name, row.Ready, row.Updated, row.Total, row.State, row.Message))
	}
	return fmt.Sprintf("%s %s %s, %d moves, waits for %q, target %s good %s; %s",
		s.Phase, s.Stage, s.Clusters, len(s.Moves), s.WaitingFor, s.TargetRevision, s.CurrentRevision, strings.Join(rows, "; "))
}

// still is that it has come to rest: though a bystander is seen to, and an hour passes, nothing
// is written.
func (w *world) still(why string) {
	w.t.Helper()
	w.barrier.Wait(w.t)
	w.requests.Reset()
	w.bystander()
	w.barrier.Step(w.t, time.Hour)
	for _, r := range w.requests.Writes() {
		if !strings.HasPrefix(r.Name, "bystander") && r.Resource != "modulerevisions" {
			w.t.Errorf("%s: %s %s/%s %s", why, r.Verb, r.Resource, r.Name, r.Subresource)
		}
	}
}

// oneOfTwoUpdating is a world of two clusters, of which one may be down, and one is updating
// to v2 for as long as the player says.
func oneOfTwoUpdating(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.manage()
	w.clusters("a", "b")
	w.module("v1", oneByOne)
	w.complete("a:v1 b:v1")
	w.player.decree(v1alpha1.StateUpdating, "v2")
	w.module("v2", oneByOne)
	w.waits("Progressing", "is updating: updating")
	return w
}

// bystander makes another module, for no cluster, and waits until it was seen to.
func (w *world) bystander() {
	w.t.Helper()
	m := &v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Name: "bystander"}}
	m.Spec.Sync = &v1alpha1.Sync{Source: &v1alpha1.Source{Git: &v1alpha1.GitSource{URL: "https://x.test/b", Version: v1alpha1.GitVersion{Tag: "v1"}}}}
	if err := w.get(&v1alpha1.Module{}, m.Name); apierrors.IsNotFound(err) {
		w.create(m)
	} else {
		w.patch(m, m.Name, fmt.Sprintf(`{"spec":{"sync":{"source":{"git":{"version":{"tag":"v%d"}}}}}}`, time.Now().UnixNano()))
	}
	w.then(func() error {
		seen := &v1alpha1.Module{}
		if err := w.get(seen, m.Name); err != nil || seen.Status.ObservedGeneration != seen.Generation {
			return fmt.Errorf("the bystander was not seen to: %w", err)
		}
		return nil
	})
}

func (w *world) revisions() []string {
	w.t.Helper()
	list := &spillway.ModuleRevisionList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, r := range list.Items {
		if r.Spec.ModuleRef.Name == app {
			names = append(names, r.Name)
		}
	}
	return names
}

func (w *world) gates() []spillway.RolloutGate {
	w.t.Helper()
	list := &spillway.RolloutGateList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

func (w *world) remove(obj client.Object, name string) {
	w.t.Helper()
	obj.SetNamespace(w.namespace)
	obj.SetName(name)
	if err := w.client.Delete(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
}

// isGone is nil if an object is not there any more.
func (w *world) isGone(obj client.Object, name string) error {
	if err := w.get(obj, name); !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s still exists: %w", name, err)
	}
	return nil
}

// decide decides a gate as a person does.
func (w *world) decide(stage string, verdict metav1.ConditionStatus) {
	w.t.Helper()
	w.then(func() error {
		list := &spillway.RolloutGateList{}
		if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			g := &list.Items[i]
			if g.Spec.Stage == stage && g.Spec.Revision == w.status().TargetRevision {
				apimeta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{Type: spillway.GatePassed, Status: verdict, Reason: "Decided", Message: "said carol"})
				return w.client.Status().Update(w.t.Context(), g)
			}
		}
		return fmt.Errorf("there is no gate for stage %s", stage)
	})
}
