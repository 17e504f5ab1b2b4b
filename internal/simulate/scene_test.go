package simulate_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/source"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones"
	"github.com/spillway-dev/spillway/internal/zones/guard"
	"github.com/spillway-dev/spillway/internal/zones/scaling"
	"github.com/spillway-dev/spillway/rollout"
)

const nodes = 3

func TestMain(m *testing.M) {
	testenv.Parallel(8)
	testenv.Main(m, testenv.Options{Nodes: nodes})
}

// scene is a namespace of the real control plane, a user in it, and a witness who
// tells in the end what has happened.
type scene struct {
	t         *testing.T
	client    client.WithWatch
	namespace string
	scenario  string
	zones     zones.Options
	config    config.Options
	// pods answer for the Pods of the scenario.
	pods *testenv.Pods

	mu     sync.Mutex
	events []event
	last   map[types.UID]client.Object
	// since is the event before which nothing counts.
	since int
}

// event is one change, as a watch tells of it.
type event struct {
	version       uint64
	before, after client.Object
}

func newClient(t *testing.T) client.WithWatch {
	t.Helper()
	kinds, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(testenv.Shared().Config(), client.Options{Scheme: kinds})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// installKinds applies the kinds of the rings, and waits until they are served.
func installKinds(t *testing.T, c client.Client) {
	t.Helper()
	objects, err := manifests.KindsOf(rings())
	if err != nil {
		t.Fatal(err)
	}
	clusters := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(clusterKind), clusters); err != nil {
		t.Fatal(err)
	}
	testenv.Kinds(t, c, objects)
	testenv.Kinds(t, c, []client.Object{clusters})
}

// clusterKind is as much of Cluster API's Cluster as the hub reads.
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

// rings are those that are simulated.
func rings() []string { return append(manager.Rings(), manager.RingFleet) }

// guarded are the scenarios in which the guards are asked about replicas.
var guarded = map[string]bool{"scaling-prepared": true}

// newScene has a manager with all rings that are simulated.
func newScene(t *testing.T, scenario string, configure func(*config.Options)) *scene {
	t.Helper()
	w := &scene{t: t, client: newClient(t), namespace: testenv.Namespace(t), scenario: scenario, pods: testenv.ServePods(t), last: map[types.UID]client.Object{}}
	w.zones = zones.Options{Namespaces: []string{w.namespace}, Now: time.Now, StatusDelay: 300 * time.Millisecond}
	w.config = config.Options{
		Namespaces: []string{w.namespace}, Now: time.Now, Options: decision.Options{CoalesceWindow: 300 * time.Millisecond, UpdateBurst: 100}, Zones: true,
	}
	configure(&w.config)
	w.installPins()
	var webhooks admission.Options
	if guarded[scenario] {
		served := testenv.RegisterWebhooks(t, w.namespace, guard.Declared().Webhooks)
		webhooks = served.Options
		defer func() { served.WaitServed(t); served.Select(t, "spillway.dev/prepares-scales", "true") }()
	}
	testenv.Managed(t, fault.New(), func(ctx context.Context, log logr.Logger) error {
		return manager.Run(ctx, testenv.Shared().Config(), manager.Options{
			Rings: rings(), Namespaces: []string{w.namespace}, Config: w.config, Zones: w.zones,
			Plans: planOptions(), Fleet: w.fleetOptions(), Admission: webhooks, MetricsAddress: "0", ProbeAddress: "0", Version: "test", Log: log,
		})
	})
	return w
}

// installPins lets the API server apply pins, where a scenario has them.
func (w *scene) installPins() {
	w.t.Helper()
	if w.config.PinNamespaces.IsEmpty() {
		return
	}
	for _, obj := range pin.Policy(w.config.PinNamespaces) {
		testenv.Apply(w.t, w.client, obj)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "probe", Annotations: map[string]string{vocabulary.Pins.Native: "secret/db=0123456789"}}}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "x", EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}}}}}}
	w.awaitMutation(pod, func(p *corev1.Pod) bool { return p.Spec.Containers[0].EnvFrom[0].SecretRef.Name != "db" })
}

// awaitMutation waits until the API server changes Pods as they are created.
func (w *scene) awaitMutation(pod *corev1.Pod, is func(*corev1.Pod) bool) {
	w.t.Helper()
	testenv.Eventually(w.t, func(ctx context.Context) error {
		probe := pod.DeepCopy()
		if err := w.client.Create(ctx, probe, client.DryRunAll); err != nil {
			return err
		}
		if !is(probe) {
			return errors.New("the policy is not in force yet")
		}
		return nil
	})
}

// apply applies what stands in files, as a user does.
func (w *scene) apply(documents []source.Document) {
	w.t.Helper()
	for _, d := range documents {
		obj := d.Object.DeepCopy()
		obj.SetNamespace(w.namespace)
		testenv.Apply(w.t, w.client, obj)
		if obj.GroupVersionKind() == cluster.GVK {
			w.bringUpCluster(obj)
		}
	}
}

// bringUpCluster does with a Cluster what Cluster API does.
func (w *scene) bringUpCluster(obj *unstructured.Unstructured) {
	w.t.Helper()
	kubeconfig := &corev1.Secret{StringData: map[string]string{"value": "x"}}
	kubeconfig.Namespace, kubeconfig.Name = w.namespace, cluster.SecretName(obj.GetName())
	up := client.RawPatch(types.MergePatchType, []byte(`{"status": {"initialization": {"controlPlaneInitialized": true}}}`))
	err := errors.Join(client.IgnoreAlreadyExists(w.client.Create(w.t.Context(), kubeconfig)), w.client.Status().Patch(w.t.Context(), obj, up))
	if err != nil {
		w.t.Fatal(err)
	}
}

// witness begins to follow all kinds from which steps are read.
func (w *scene) witness() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w.t.Cleanup(cancel)
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &appsv1.DaemonSetList{}, &corev1.PodList{}, instances(), &fleetv1.ProxyAssemblageList{},
	} {
		if err := w.client.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
			w.t.Fatal(err)
		}
		found, err := apimeta.ExtractList(list)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, obj := range found {
			w.note(watch.Added, obj.(client.Object), 0)
		}
		events, err := w.client.Watch(ctx, list, client.InNamespace(w.namespace), resumed(list.GetResourceVersion()))
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(events.Stop)
		go w.follow(events)
	}
	w.since = len(w.events)
}

func (w *scene) follow(events watch.Interface) {
	for e := range events.ResultChan() {
		if obj, ok := e.Object.(client.Object); ok && e.Type != watch.Error {
			version, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
			if err != nil {
				panic(err)
			}
			w.note(e.Type, obj, version)
		}
	}
}

func (w *scene) note(kind watch.EventType, obj client.Object, version uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := event{version: version, before: w.last[obj.GetUID()], after: obj}
	if kind == watch.Deleted {
		e.after = nil
	}
	w.last[obj.GetUID()] = e.after
	w.events = append(w.events, e)
}

// steps are those that have been taken so far, in the order of the API server.
func (w *scene) steps() []record.Step {
	w.mu.Lock()
	events := slices.Clone(w.events)
	w.mu.Unlock()
	slices.SortStableFunc(events[w.since:], func(a, b event) int { return cmp.Compare(a.version, b.version) })
	r := record.NewRecorder()
	var pods []client.Object
	for _, e := range events[:w.since] {
		r.See(0, e.before, e.after)
		if _, ok := e.after.(*corev1.Pod); ok {
			pods = append(pods, e.after)
		}
	}
	r.Forget(pods)
	for _, e := range events[w.since:] {
		r.Begin()
		r.See(0, e.before, e.after)
	}
	return r.Steps()
}

// waits are what is not where it should be, and why; by the same code as a
// simulation asks.
func (w *scene) waits(ctx context.Context) ([]string, error) {
	workloads, err := config.Status(ctx, w.client, w.config, w.namespace)
	if err != nil {
		return nil, err
	}
	var waits []string
	for i := range workloads {
		if e := &workloads[i]; e.State != config.StateUpToDate && e.State != config.StateNotTracked {
			waits = append(waits, fmt.Sprintf("%s/%s %s", strings.ToLower(e.Kind), e.Name, e.Reason))
		}
	}
	groups, err := zones.Status(ctx, w.client, w.zones, w.namespace)
	if err != nil {
		return nil, err
	}
	for i := range groups {
		if e := &groups[i]; e.Phase != string(rollout.PhaseComplete) {
			waits = append(waits, fmt.Sprintf("rolloutgroup/%s %s", e.Name, e.Reason))
		}
	}
	scales, err := w.scalingWaits(ctx)
	if err != nil {
		return nil, err
	}
	modules, err := w.fleetWaits(ctx)
	if err != nil {
		return nil, err
	}
	more, err := w.plansWait(ctx)
	if err != nil {
		return nil, err
	}
	waits = slices.Concat(waits, scales, modules, more)
	unwhole, err := record.Unwhole(ctx, w.client, w.namespace, w.told(waits))
	for i := range unwhole {
		waits = append(waits, fmt.Sprintf("%s %s", unwhole[i].Object, unwhole[i].Reason))
	}
	return waits, err
}

// scalingWaits are the replicas that are not as many as they are to be.
func (w *scene) scalingWaits(ctx context.Context) ([]string, error) {
	sets := &appsv1.StatefulSetList{}
	if err := w.client.List(ctx, sets, client.InNamespace(w.namespace)); err != nil {
		return nil, err
	}
	groups := map[string]bool{}
	for i := range sets.Items {
		if set := &sets.Items[i]; scaling.Follows(set) {
			groups[vocabulary.GroupOf(set.Labels, set.Annotations)] = true
		}
	}
	var waits []string
	for group := range groups {
		plan, err := scaling.Look(ctx, w.client, scaling.Options{Now: time.Now}, w.namespace, group)
		if err != nil {
			return nil, err
		}
		for _, e := range plan.Waits(types.NamespacedName{Namespace: w.namespace, Name: group}) {
			waits = append(waits, fmt.Sprintf("rolloutgroup/%s %s", group, e.Reason))
		}
	}
	return waits, nil
}

// told are the waits of which the rings tell, as far as that is their objects.
func (w *scene) told(waits []string) []record.Wait {
	told := make([]record.Wait, 0, len(waits))
	for _, wait := range waits {
		object, _, _ := strings.Cut(wait, " ")
		told = append(told, record.Wait{Namespace: w.namespace, Object: object})
	}
	return told
}

// whole is nil if all workloads have what they ask for, at the revision for which
// they ask, unless Kubernetes is kept from that.
func (w *scene) whole(ctx context.Context) error {
	deployments, sets, daemons := &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &appsv1.DaemonSetList{}
	for _, list := range []client.ObjectList{deployments, sets, daemons} {
		if err := w.client.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
	}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		if d.Spec.Paused {
			continue
		}
		if d.Status.ObservedGeneration != d.Generation || d.Status.UpdatedReplicas != *d.Spec.Replicas || d.Status.Replicas != *d.Spec.Replicas || d.Status.AvailableReplicas != *d.Spec.Replicas {
			return fmt.Errorf("Deployment %s is not whole", d.Name)
		}
	}
	for i := range sets.Items {
		s := &sets.Items[i]
		updated := *s.Spec.Replicas
		if rolling := s.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
			updated -= *rolling.Partition
		}
		if s.Status.ObservedGeneration != s.Generation || s.Status.UpdatedReplicas < updated || s.Status.AvailableReplicas != *s.Spec.Replicas {
			return fmt.Errorf("StatefulSet %s is not whole", s.Name)
		}
		group := client.ObjectKey{Namespace: w.namespace, Name: vocabulary.GroupOf(s.Labels, s.Annotations)}
		if group.Name == "" {
			continue
		}
		if err := w.client.Get(ctx, group, &v1alpha1.RolloutGroup{}); err != nil {
			return err // the manager makes it, and guards of scaling need it
		}
	}
	for i := range daemons.Items {
		d := &daemons.Items[i]
		byHand := d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
		if d.Status.ObservedGeneration != d.Generation || !byHand && d.Status.UpdatedNumberScheduled != nodes || d.Status.NumberAvailable != nodes {
			return fmt.Errorf("DaemonSet %s is not whole", d.Name)
		}
	}
	return nil
}
