//go:build bench

package zones_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/testenv"
	"github.com/spillway-dev/spillway/internal/testenv/fault"
	"github.com/spillway-dev/spillway/internal/zones"
)

const (
	zoneRollouts = 30
	zonePods     = 20
)

func TestMain(m *testing.M) { testenv.Main(m, testenv.Options{Nodes: 3}) }

// TestIdleTimeBetweenZones rolls three zones of 20 Pods over and over, and
// measures by a watch of its own how long nothing happens between the moment in
// which the last Pod of a zone is seen ready and that in which the first Pod of
// the next zone is seen to go.
func TestIdleTimeBetweenZones(t *testing.T) {
	for _, strategy := range []string{"OnDelete", "RollingUpdate"} {
		t.Run(strategy, func(t *testing.T) {
			c, ns, counted := newClient(t), testenv.Namespace(t), fault.New()
			installZones(t, c)
			run(t, ns, counted)
			for _, name := range zoneNames("g") {
				createZone(t, c, ns, name, "g", strategy, zonePods)
			}
			waitGroups(t, c, ns, 1)
			watcher := watchIdle(t, ns)
			counted.Reset()
			for round := range zoneRollouts {
				rollZones(t, c, ns, zoneNames("g"), fmt.Sprint(round))
				waitGroups(t, c, ns, 1)
			}
			idle := watcher.idle(t)
			moved := 3 * zonePods * zoneRollouts
			fmt.Printf("| 3 zones of %d Pods, %s, %d rollouts | |\n", zonePods, strategy, zoneRollouts)
			fmt.Printf("| idle between zones, of %d: p50, p99, most (target: p50 at most 30 ms, p99 at most 150 ms) | %s, %s, %s |\n",
				len(idle), quantile(idle, 0.50), quantile(idle, 0.99), idle[len(idle)-1])
			fmt.Printf("| writes, and writes a Pod | %d, %.3f |\n", len(counted.Writes()), float64(len(counted.Writes()))/float64(moved))
		})
	}
}

// TestManyGroupsAtOnce changes all groups at once: all roll side by side.
func TestManyGroupsAtOnce(t *testing.T) {
	const groups = 200
	c, ns := newClient(t), testenv.Namespace(t)
	installZones(t, c)
	run(t, ns, fault.New())
	var all []string
	for g := range groups {
		all = append(all, zoneNames(fmt.Sprintf("g%d", g))...)
	}
	each(t, len(all), func(i int) error {
		return c.Create(t.Context(), zoneOf(ns, all[i], all[i][:len(all[i])-2], "OnDelete", 3))
	})
	waitGroups(t, c, ns, groups)
	began := time.Now()
	rollZones(t, c, ns, all, "1")
	waitGroups(t, c, ns, groups)
	all200 := time.Since(began)
	began = time.Now()
	rollZones(t, c, ns, zoneNames("g0"), "2")
	waitGroups(t, c, ns, groups)
	fmt.Printf("| %d groups of 9 Pods changed at once | %.1f s, one alone %.1f s |\n", groups, all200.Seconds(), time.Since(began).Seconds())
}

func newClient(t *testing.T) client.Client {
	t.Helper()
	c, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// each does something n times, several at a time.
func each(t *testing.T, n int, do func(int) error) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for i := range n {
		group.Go(func() error { return do(i) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func zoneNames(group string) []string { return []string{group + "-a", group + "-b", group + "-c"} }

func installZones(t *testing.T, c client.Client) {
	t.Helper()
	raw, err := os.ReadFile("../../internal/manifests/generated/zones/spillway.dev_rolloutgroups.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, &crd.Object); err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(crd), client.FieldOwner("user")); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func(ctx context.Context) error { return c.List(ctx, rolloutGroups(), client.InNamespace("default")) })
}

func rolloutGroups() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "spillway.dev", Version: "v1alpha1", Kind: "RolloutGroupList"})
	return list
}

// run starts a manager with the zones ring, and stops it at the end of the test.
func run(t *testing.T, ns string, counted *fault.Injector) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	o := manager.Options{
		Rings: []string{manager.RingZones}, Namespaces: []string{ns}, Zones: zones.Options{Now: time.Now},
		MetricsAddress: "0", ProbeAddress: "0", Log: logr.Discard(),
	}
	go func() { done <- manager.Run(ctx, counted.Wrap(testenv.Shared().Config()), o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func zoneOf(ns, name, group, strategy string, replicas int32) *appsv1.StatefulSet {
	labels := map[string]string{"app": name}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{"rollout-group": group}}}
	set.Spec = appsv1.StatefulSetSpec{
		Replicas: &replicas, ServiceName: "x", Selector: &metav1.LabelSelector{MatchLabels: labels},
		PodManagementPolicy: appsv1.ParallelPodManagement,
		UpdateStrategy:      appsv1.StatefulSetUpdateStrategy{Type: appsv1.StatefulSetUpdateStrategyType(strategy)},
	}
	set.Spec.Template.Labels = labels
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "x"}}
	return set
}

func createZone(t *testing.T, c client.Client, ns, name, group, strategy string, replicas int32) {
	t.Helper()
	if err := c.Create(t.Context(), zoneOf(ns, name, group, strategy, replicas)); err != nil {
		t.Fatal(err)
	}
}

func rollZones(t *testing.T, c client.Client, ns string, names []string, image string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":%q}]}}}}`, image)
	each(t, len(names), func(i int) error {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: names[i]}}
		return c.Patch(t.Context(), set, client.RawPatch(types.StrategicMergePatchType, patch))
	})
}

// waitGroups waits until so many groups are complete, and every set is.
func waitGroups(t *testing.T, c client.Client, ns string, n int) {
	t.Helper()
	testenv.Eventually(t, func(ctx context.Context) error {
		sets, groups := &appsv1.StatefulSetList{}, rolloutGroups()
		if err := c.List(ctx, sets, client.InNamespace(ns)); err != nil {
			return err
		}
		for i := range sets.Items {
			s := &sets.Items[i]
			if s.Status.ObservedGeneration != s.Generation || s.Status.ReadyReplicas != *s.Spec.Replicas || s.Status.UpdatedReplicas != *s.Spec.Replicas {
				return fmt.Errorf("%s: %+v", s.Name, s.Status)
			}
		}
		if err := c.List(ctx, groups, client.InNamespace(ns)); err != nil {
			return err
		}
		complete := 0
		for _, g := range groups.Items {
			if phase, _, _ := unstructured.NestedString(g.Object, "status", "phase"); phase == "Complete" {
				complete++
			}
		}
		if complete != n {
			return fmt.Errorf("%d of %d groups are complete", complete, n)
		}
		return nil
	})
}

// idleWatch notes when Pods are seen to become ready and to go.
type idleWatch struct {
	mu    sync.Mutex
	ready map[types.UID]bool
	gone  map[types.UID]bool
	notes []note
}

type note struct {
	at   time.Time
	zone string
	goes bool
}

func watchIdle(t *testing.T, ns string) *idleWatch {
	t.Helper()
	c, err := testenv.Shared().Clientset()
	if err != nil {
		t.Fatal(err)
	}
	pods, err := c.CoreV1().Pods(ns).Watch(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pods.Stop)
	w := &idleWatch{ready: map[types.UID]bool{}, gone: map[types.UID]bool{}}
	go func() {
		for e := range pods.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok {
				w.see(p)
			}
		}
	}()
	return w
}

func (w *idleWatch) see(p *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	switch {
	case p.DeletionTimestamp != nil && !w.gone[p.UID]:
		w.gone[p.UID] = true
		w.notes = append(w.notes, note{time.Now(), p.Labels["app"], true})
	case ready && p.DeletionTimestamp == nil && !w.ready[p.UID]:
		w.ready[p.UID] = true
		w.notes = append(w.notes, note{time.Now(), p.Labels["app"], false})
	}
}

// idle are the times between the last Pod of a zone that became ready and the
// first of the next zone that went, sorted.
func (w *idleWatch) idle(t *testing.T) []time.Duration {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	var idle []time.Duration
	for i, n := range w.notes {
		if i > 0 && n.goes && !w.notes[i-1].goes && w.notes[i-1].zone < n.zone {
			idle = append(idle, n.at.Sub(w.notes[i-1].at).Round(10*time.Microsecond))
		}
	}
	if len(idle) < zoneRollouts {
		t.Fatalf("only %d times were measured", len(idle))
	}
	slices.Sort(idle)
	return idle
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
