package zones_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
)

// scaleStory makes use of all that the ring does about replicas and evictions: a zone
// mirrors a ReplicaTemplate, another is scaled down by its Scale once its Pod was called,
// and a Pod is evicted under a budget of ours and one of Kubernetes.
func (w *world) scaleStory(hooks *testenv.Webhooks) {
	w.t.Helper()
	pods, selector := testenv.ServePods(w.t), &metav1.LabelSelector{MatchLabels: map[string]string{"app": "bare"}}
	w.create(
		&zonesv1.ReplicaTemplate{ObjectMeta: metav1.ObjectMeta{Name: "both"}, Spec: zonesv1.ReplicaTemplateSpec{Replicas: new(int32(2))}},
		zone("mirror", onDelete, guarded, replicas(1), mirrors("both")),
		zone("told", onDelete, guarded, replicas(3), tells(pods)),
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "bare"}, Spec: appsv1.DeploymentSpec{Selector: selector, Template: bare()}},
		&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "bare"}, Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: bare()}},
	)
	w.eventually(func() error { return w.hasReady("mirror", 2) })
	w.eventually(func() error { return w.hasReady("told", 3) })
	w.seenTo("scaled")
	hooks.WaitSelected(w.t)
	w.eventually(func() error { return w.scale(&appsv1.StatefulSet{}, "told", 2) })
	w.eventually(func() error { return w.hasReady("told", 2) })
	for _, obj := range []client.Object{&appsv1.Deployment{}, &appsv1.ReplicaSet{}} {
		w.eventually(func() error { return w.scale(obj, "bare", 0) })
	}
	labels := map[string]string{"app": "told"}
	one := intstr.FromInt32(1)
	w.create(
		&zonesv1.ZoneAwarePodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "scaled"},
			Spec:       zonesv1.ZoneAwarePodDisruptionBudgetSpec{Selector: zonesv1.Selector{MatchLabels: map[string]string{"rollout-group": "scaled"}}},
		},
		&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "scaled"},
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}},
		},
	)
	w.eventually(func() error { return w.evict("told-0") })
	w.create(zone("claims", onDelete, inGroup(""), replicas(1), tells(pods), claims))
	w.eventually(func() error { return contains(w.images("claims"), "v1!") })
	w.eventually(func() error { return w.scale(&appsv1.StatefulSet{}, "claims", 0) })
}

// claims gives each Pod a claim that no controller binds, so that it never runs.
func claims(s *appsv1.StatefulSet) {
	c := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	c.Spec.StorageClassName = new("none")
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{c}
}

// mirrors makes a zone mirror a ReplicaTemplate.
func mirrors(name string) func(*appsv1.StatefulSet) {
	return annotated("grafana.com/rollout-mirror-replicas-from-resource-name", name, "grafana.com/rollout-mirror-replicas-from-resource-kind", "ReplicaTemplate",
		"grafana.com/rollout-mirror-replicas-from-resource-api-version", "rollout-operator.grafana.com/v1")
}

// tells makes Pods that go be told at a server.
func tells(pods *testenv.Pods) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) {
		s.Labels["grafana.com/prepare-downscale"] = "true"
		annotated("grafana.com/prepare-downscale-http-path", "prepare", "grafana.com/prepare-downscale-http-port", pods.Port)(s)
		s.Spec.Template.Annotations[testenv.PodIP] = pods.IP
	}
}

// guarded makes a zone one of the group scaled, whose Pods have a budget.
func guarded(s *appsv1.StatefulSet) {
	s.Labels["rollout-group"], s.Spec.Template.Labels["rollout-group"] = "scaled", "scaled"
}

// bare are Pods that no zone has anything to do with.
func bare() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "bare"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x"}}},
	}
}

func (w *world) hasReady(name string, want int32) error {
	if s := w.set(name); s.Status.ReadyReplicas != want || s.Status.Replicas != want || *s.Spec.Replicas != want {
		return fmt.Errorf("%s has %d of %d replicas ready, of %d asked for; want %d", name, s.Status.ReadyReplicas, s.Status.Replicas, *s.Spec.Replicas, want)
	}
	return nil
}

// scale does as an autoscaler does: it reads the Scale and writes it back.
func (w *world) scale(obj client.Object, name string, n int32) error {
	obj.SetNamespace(w.namespace)
	obj.SetName(name)
	return testenv.Scale(w.t.Context(), w.client, obj, n)
}

// evict asks for an eviction as kubectl drain does.
func (w *world) evict(pod string) error {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: pod}}
	return w.client.SubResource("eviction").Create(w.t.Context(), p, &policyv1.Eviction{})
}

// Performance: under a disruption budget a Pod costs rollout-operator 8.3 calls, and a
// LIST of Pods for each that is asked about. The budget holds at every instant.
func TestARolloutUnderADisruptionBudget(t *testing.T) {
	w := newWorld(t)
	two := int32(2)
	w.create(&zonesv1.ZoneAwarePodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: ingester},
		Spec:       zonesv1.ZoneAwarePodDisruptionBudgetSpec{MaxUnavailable: &two, Selector: zonesv1.Selector{MatchLabels: map[string]string{"tier": "ingest"}}},
	})
	tier := func(s *appsv1.StatefulSet) { s.Spec.Template.Labels["tier"] = "ingest" }
	zones := []string{"zone-a", "zone-b", "zone-c"}
	for _, zone := range zones {
		w.witness.allow(zone, 2)
	}
	w.options.StatusDelay = time.Hour // no load makes it pass
	w.manage()
	w.settles(onDelete, replicas(4), tier, annotated("rollout-max-unavailable", "4"))
	w.eventually(w.isComplete)
	before := len(w.requests.Requests())
	w.roll("v2", zones...)
	w.complete("v2", zones...)
	if most := w.witness.testify().most; most != 2 {
		t.Errorf("at most %d Pods were down at a time, want 2", most)
	}
	var calls []string
	for _, r := range w.requests.Requests()[before:] {
		if r.Resource != "" && r.Resource != "events" && r.Verb != "watch" {
			calls = append(calls, r.Verb+" "+r.Resource)
		}
		if r.Verb == "list" {
			t.Errorf("%s was listed", r.Resource)
		}
	}
	if len(calls) > 2*3*4+1 { // that at the end frees the lock
		t.Errorf("%d calls for 12 Pods: %v", len(calls), calls)
	}
}

// A budget that cannot be understood is said, with its fix, and nothing is rolled.
func TestABudgetThatCannotBeUnderstood(t *testing.T) {
	w := newWorld(t)
	labels := zonesv1.Selector{MatchLabels: map[string]string{"app": "zone-a"}}
	for _, name := range []string{"one", "another"} {
		w.create(&zonesv1.ZoneAwarePodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: zonesv1.ZoneAwarePodDisruptionBudgetSpec{Selector: labels}})
	}
	w.manage()
	w.three(onDelete, replicas(1))
	w.waitsFor("Stalled", "multiple zoned pod disruption budgets found for pod")
	other := &zonesv1.ZoneAwarePodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "another"}}
	if err := w.client.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	w.eventually(w.isComplete)
}

// Rollouts, downscales and evictions come at the same time, all through the real API; and at no
// instant is a Pod of one zone taken while another zone is not whole.
func TestFaultEverythingParallel(t *testing.T) {
	w := newWorld(t)
	pods, zones := testenv.ServePods(t), []string{"zone-a", "zone-b", "zone-c"}
	hooks := testenv.RegisterWebhooks(t, w.namespace, manager.Options{}.Declarations(manager.RingZones).Webhooks)
	w.create(&zonesv1.ZoneAwarePodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: ingester},
		Spec:       zonesv1.ZoneAwarePodDisruptionBudgetSpec{Selector: zonesv1.Selector{MatchLabels: map[string]string{"rollout-group": ingester}}},
	})
	w.manage(func(o *manager.Options) { o.Admission = hooks.Options })
	hooks.WaitServed(t)
	w.settles(onDelete, tells(pods), func(s *appsv1.StatefulSet) { s.Spec.Template.Labels["rollout-group"] = ingester })
	hooks.WaitSelected(t)

	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	var evicted, scaled atomic.Int64
	for client := range 4 {
		others.Go(func() { w.drain(ctx, rand.New(rand.NewPCG(1, uint64(client))), &evicted) })
	}
	others.Go(func() { w.shrinkAndGrow(ctx, zones, &scaled) })
	for _, image := range []string{"v2", "v3"} {
		w.roll(image, zones...)
		w.eventually(func() error { return w.allRun(image, zones) })
	}
	w.eventually(func() error {
		if evicted.Load() < 3 || scaled.Load() < 3 {
			return fmt.Errorf("%d evictions and %d downscales got through", evicted.Load(), scaled.Load())
		}
		return nil
	})
	stop()
	others.Wait()
	w.eventually(w.isComplete)
	w.witness.testify()
	t.Logf("%d evictions and %d downscales got through", evicted.Load(), scaled.Load())
}

// drain asks for evictions of Pods, and does not take a no for an answer.
func (w *world) drain(ctx context.Context, random *rand.Rand, evicted *atomic.Int64) {
	for ctx.Err() == nil {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: fmt.Sprintf("zone-%c-%d", 'a'+random.IntN(3), random.IntN(3))}}
		if err := w.client.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{}); err == nil {
			evicted.Add(1)
		}
	}
}

// shrinkAndGrow takes a replica of one zone after another away, and gives it back.
func (w *world) shrinkAndGrow(ctx context.Context, zones []string, scaled *atomic.Int64) {
	for i := 0; ctx.Err() == nil; i++ {
		if w.scale(&appsv1.StatefulSet{}, zones[i%len(zones)], 2) == nil {
			scaled.Add(1)
			for w.scale(&appsv1.StatefulSet{}, zones[i%len(zones)], 3) != nil {
				continue // another client was faster
			}
		}
	}
}

// allRun is nil once all Pods that there are to be run an image.
func (w *world) allRun(image string, zones []string) error {
	for _, zone := range zones {
		if got := w.images(zone); strings.Trim(got, image+" ") != "" || got == "" {
			return fmt.Errorf("%s runs %s: %s", zone, got, w.says())
		}
	}
	return nil
}

// Pods that a downscale of a zone removes are down until they are gone, whatever its
// status says: no other zone is disrupted meanwhile.
func TestPodsThatADownscaleRemovesAreDown(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, w *world, strategy string) {
		w.create(
			zone("zone-a", strategy, func(s *appsv1.StatefulSet) {
				s.Spec.Template.Finalizers = []string{"example.test/stays"} // it terminates for as long as that
			}),
			zone("zone-b", strategy, replicas(2)))
		w.manage()
		w.complete("v1", "zone-a", "zone-b")
		w.patch(&appsv1.StatefulSet{}, "zone-a", `{"spec":{"replicas":2}}`)
		w.eventually(func() error {
			if s := w.set("zone-a"); s.Status.ObservedGeneration != s.Generation {
				return errors.New("it is not seen yet")
			}
			return contains(w.images("zone-a"), "v1 v1 v1!")
		})
		w.roll("v2", "zone-b")
		w.waitsFor("Progressing", "zone-a-2 is being removed: terminating")
		if images := w.images("zone-b"); images != "v1 v1" {
			t.Errorf("zone-b runs %s while zone-a-2 has not gone", images)
		}
		for _, p := range w.pods("zone-a") {
			if p.DeletionTimestamp != nil {
				w.letGo(&p)
			}
		}
		w.complete("v2", "zone-b")
		for _, p := range w.pods("zone-a") {
			w.letGo(&p)
		}
	})
}
