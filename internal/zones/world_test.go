package zones_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubernetes "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/barrier"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/zones"
)

func TestMain(m *testing.M) {
	testenv.Parallel(6)
	testenv.Main(m, testenv.Options{Nodes: 3})
}

const (
	onDelete      = "OnDelete"
	rollingUpdate = "RollingUpdate"
	behavior      = "testenv.spillway.dev/behavior"
	readyAfter    = "testenv.spillway.dev/ready-after"
	ingester      = "ingester"
)

// world is a namespace of its own, a user in it, and a witness of all that happens.
type world struct {
	t         *testing.T
	client    client.Client
	namespace string
	options   zones.Options
	// requests are what the managers of this world have asked of the API server.
	requests *fault.Injector
	witness  *witness
	// clock is that of the managers, which the barrier waits for.
	clock   *barrier.Clock
	barrier *barrier.Barrier
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return newWorldNow(t)
}

// newWorldNow is newWorld for a test that others wait for.
func newWorldNow(t *testing.T) *world {
	t.Helper()
	return newWorldOn(t, testenv.Shared(), testenv.Namespace(t))
}

func newWorldOn(t *testing.T, cp *controlplane.ControlPlane, namespace string) *world {
	t.Helper()
	w := &world{t: t, client: newClient(t, cp), namespace: namespace, requests: fault.New(), clock: &barrier.Clock{}}
	w.barrier = barrier.New(w.client, w.clock)
	w.options = zones.Options{Namespaces: []string{namespace}, Now: w.clock.Now, StatusDelay: 300 * time.Millisecond}
	installKinds(t, w.client)
	testenv.KnownReasons(t, w.client, namespace, &v1alpha1.RolloutGroupList{})
	w.witness = newWitness(t, cp, namespace)
	return w
}

func newClient(t *testing.T, cp *controlplane.ControlPlane) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(kubernetes.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), zonesv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cp.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// installKinds applies the kinds of the ring, and waits until they are served.
func installKinds(t *testing.T, c client.Client) {
	t.Helper()
	objects, err := manifests.KindsOf([]string{manager.RingZones})
	if err != nil {
		t.Fatal(err)
	}
	testenv.Kinds(t, c, objects)
	testenv.Eventually(t, func(ctx context.Context) error { return c.List(ctx, &v1alpha1.RolloutGroupList{}) })
}

// manage starts a manager, which is stopped at the end of the test or by what is returned.
func (w *world) manage(change ...func(*manager.Options)) (stop func()) {
	w.t.Helper()
	return w.managed(w.requests, change...)
}

// managed is manage with a transport.
func (w *world) managed(inj *fault.Injector, change ...func(*manager.Options)) (stop func()) {
	w.t.Helper()
	o := manager.Options{
		Rings: []string{manager.RingZones}, Namespaces: w.options.Namespaces, Zones: w.options, Config: config.Options{Now: w.clock.Now},
	}
	for _, c := range change {
		c(&o)
	}
	return w.barrier.Run(w.t, w.witness.cp.Config(), inj, o)
}

// zone is a StatefulSet of the group ingester, at revision v1, as a user writes it.
func zone(name, strategy string, change ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	labels, replicas := map[string]string{"app": name}, int32(3)
	set := &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"rollout-group": ingester}, Annotations: map[string]string{}},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, ServiceName: "x", Selector: &metav1.LabelSelector{MatchLabels: labels},
			PodManagementPolicy: appsv1.ParallelPodManagement,
			UpdateStrategy:      appsv1.StatefulSetUpdateStrategy{Type: appsv1.StatefulSetUpdateStrategyType(strategy)},
		},
	}
	set.Spec.Template.Labels = labels
	set.Spec.Template.Annotations = map[string]string{}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "v1"}}
	for _, c := range change {
		c(set)
	}
	return set
}

func replicas(n int32) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) { s.Spec.Replicas = &n }
}

func annotated(pairs ...string) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) {
		for i := 0; i < len(pairs); i += 2 {
			s.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

func inGroup(group string) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) { s.Labels["rollout-group"] = group }
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

// three zones of a group, each with as many replicas.
func (w *world) three(strategy string, change ...func(*appsv1.StatefulSet)) {
	w.t.Helper()
	for _, name := range []string{"zone-a", "zone-b", "zone-c"} {
		w.create(zone(name, strategy, change...))
	}
}

// roll changes the image of zones, and so their revision.
func (w *world) roll(image string, names ...string) {
	w.t.Helper()
	if len(names) == 0 {
		names = []string{"zone-a", "zone-b", "zone-c"}
	}
	for _, name := range names {
		w.patch(&appsv1.StatefulSet{}, name, fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":%q}]}}}}`, image))
	}
}

// behave changes how Pods of zones behave from the next revision on, with the image.
func (w *world) behave(image, how string, names ...string) {
	w.t.Helper()
	value := "null"
	if how != "" {
		value = fmt.Sprintf("%q", how)
	}
	for _, name := range names {
		w.patch(&appsv1.StatefulSet{}, name, fmt.Sprintf(
			`{"spec":{"template":{"metadata":{"annotations":{%q:%s}},"spec":{"containers":[{"name":"c","image":%q}]}}}}`, behavior, value, image))
	}
}

func (w *world) patch(obj client.Object, name, patch string) {
	w.t.Helper()
	obj.SetNamespace(w.namespace)
	obj.SetName(name)
	kind := types.StrategicMergePatchType
	if _, custom := obj.(*v1alpha1.RolloutGroup); custom {
		kind = types.MergePatchType
	}
	if err := w.client.Patch(w.t.Context(), obj, client.RawPatch(kind, []byte(patch))); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) annotate(name, key, value string) {
	w.t.Helper()
	quoted := fmt.Sprintf("%q", value)
	if value == "" {
		quoted = "null"
	}
	w.patch(&appsv1.StatefulSet{}, name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, quoted))
}

func (w *world) get(obj client.Object, name string) error {
	return w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, obj)
}

// group is the RolloutGroup as it is.
func (w *world) group() *v1alpha1.RolloutGroup {
	w.t.Helper()
	g := &v1alpha1.RolloutGroup{}
	if err := w.get(g, ingester); client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return g
}

func (w *world) set(name string) *appsv1.StatefulSet {
	w.t.Helper()
	s := &appsv1.StatefulSet{}
	if err := w.get(s, name); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// pods are the Pods of a zone, by name.
func (w *world) pods(name string) []corev1.Pod {
	w.t.Helper()
	list := &corev1.PodList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	list.Items = slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		owner := metav1.GetControllerOf(&p)
		return owner == nil || owner.Name != name
	})
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items
}

// images are those of the Pods of a zone, with a "!" for each that is not ready.
func (w *world) images(name string) string {
	w.t.Helper()
	var images []string
	for _, p := range w.pods(name) {
		image := p.Spec.Containers[0].Image
		if !isReady(&p) {
			image += "!"
		}
		images = append(images, image)
	}
	return strings.Join(images, " ")
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil
		}
	}
	return false
}

func (w *world) eventually(check func() error) {
	w.t.Helper()
	testenv.Eventually(w.t, func(context.Context) error { return check() })
}

// runs waits until each of these zones has Pods with these images: "zone-a: v1 v1 v2!".
func (w *world) runs(want ...string) {
	w.t.Helper()
	w.eventually(func() error {
		for _, line := range want {
			name, images, _ := strings.Cut(line, ": ")
			if got := w.images(name); got != images {
				return fmt.Errorf("%s runs %s, want %s", name, got, images)
			}
		}
		return nil
	})
}

// complete waits until a group says that all is done, and is right about it.
func (w *world) complete(image string, names ...string) {
	w.t.Helper()
	if len(names) == 0 {
		names = []string{"zone-a", "zone-b", "zone-c"}
	}
	w.eventually(func() error {
		for _, name := range names {
			set, pods := w.set(name), w.pods(name)
			if len(pods) != int(*set.Spec.Replicas) {
				return fmt.Errorf("%s has %d Pods, want %d: %s", name, len(pods), *set.Spec.Replicas, w.says())
			}
			for _, p := range pods {
				if !isReady(&p) || p.Spec.Containers[0].Image != image {
					return fmt.Errorf("%s runs %s: %s", name, w.images(name), w.says())
				}
			}
		}
		return w.isComplete()
	})
}

func (w *world) isComplete() error {
	s := &w.group().Status
	if s.Phase != "Complete" || s.Lock != nil || len(s.Moves) > 0 || !apimeta.IsStatusConditionTrue(s.Conditions, ring.ConditionReady) {
		return errors.New(w.says())
	}
	return nil
}

// says is what the status of the group says in short.
func (w *world) says() string {
	s := &w.group().Status
	var rows []string
	for _, z := range s.Zones {
		rows = append(rows, fmt.Sprintf("%s %d/%d/%d %s %s", z.Name, z.Updated, z.Ready, z.Total, z.State, z.Message))
	}
	return fmt.Sprintf("%s %s %s lock %+v moves %d, waiting for %q; %s", s.Phase, s.Zone, s.Updated, s.Lock, len(s.Moves), s.WaitingFor, strings.Join(rows, "; "))
}

// settled returns once the controller of StatefulSets has observed all of them, and the manager
// what that has written, and has done all that follows.
func (w *world) settled() {
	w.t.Helper()
	w.eventually(func() error {
		sets := &appsv1.StatefulSetList{}
		if err := w.client.List(w.t.Context(), sets, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		for i := range sets.Items {
			if s := &sets.Items[i]; s.Status.ObservedGeneration != s.Generation {
				return fmt.Errorf("%s is not observed by its controller", s.Name)
			}
		}
		return nil
	})
	w.barrier.Wait(w.t)
}

// waitsFor makes sure that the group waits for something, whatever that is in the cluster.
func (w *world) waitsFor(phase, text string) {
	w.t.Helper()
	w.settled()
	if s := &w.group().Status; s.Phase != phase || !strings.Contains(s.WaitingFor, text) {
		w.t.Errorf("want phase %s and %q: %s", phase, text, w.says())
	}
}

// saysEventually waits until the group waits for something that another process does.
func (w *world) saysEventually(phase, text string) {
	w.t.Helper()
	w.eventually(func() error {
		if s := &w.group().Status; s.Phase != phase || !strings.Contains(s.WaitingFor, text) {
			return fmt.Errorf("want phase %s and %q: %s", phase, text, w.says())
		}
		return nil
	})
}

// another makes a group of one zone, and waits until its Pod runs.
func (w *world) another(name string) {
	w.t.Helper()
	w.create(zone(name, onDelete, inGroup(name), replicas(1)))
	w.runs(name + ": v1")
}

// seenTo makes sure that another group is complete, once its Pods run.
func (w *world) seenTo(name string) {
	w.t.Helper()
	w.settled()
	g := &v1alpha1.RolloutGroup{}
	if err := w.get(g, name); err != nil || g.Status.Phase != "Complete" {
		w.t.Errorf("group %s says %q: %v", name, g.Status.Phase, err)
	}
}

// event waits until there is an Event about the group with this reason.
func (w *world) event(reason string) {
	w.t.Helper()
	w.eventually(func() error {
		list := &corev1.EventList{}
		if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Reason == reason && e.InvolvedObject.Kind == "RolloutGroup" {
				return nil
			}
		}
		return fmt.Errorf("no Event %s about the group", reason)
	})
}

// tryKill deletes a Pod as a human does.
func (w *world) tryKill(pod string) error {
	p := &corev1.Pod{}
	if err := w.get(p, pod); err != nil {
		return err
	}
	w.witness.human(p.UID)
	return w.client.Delete(w.t.Context(), p, client.Preconditions{UID: &p.UID})
}

func (w *world) remove(obj client.Object, name string) {
	w.t.Helper()
	obj.SetNamespace(w.namespace)
	obj.SetName(name)
	if err := w.client.Delete(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
}

// settles creates three zones and waits until they are whole.
func (w *world) settles(strategy string, change ...func(*appsv1.StatefulSet)) {
	w.t.Helper()
	w.three(strategy, change...)
	w.complete("v1")
}

func mergePatch(patch string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(patch))
}
