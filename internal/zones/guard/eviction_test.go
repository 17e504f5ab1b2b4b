package guard_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

const behavior = "testenv.spillway.dev/behavior"

func budget(change ...func(*zonesv1.ZoneAwarePodDisruptionBudgetSpec)) *zonesv1.ZoneAwarePodDisruptionBudget {
	b := &zonesv1.ZoneAwarePodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "ingester-rollout"}}
	b.Spec.Selector.MatchLabels = map[string]string{"rollout-group": ingester}
	for _, c := range change {
		c(&b.Spec)
	}
	return b
}

func most(n int32) func(*zonesv1.ZoneAwarePodDisruptionBudgetSpec) {
	return func(s *zonesv1.ZoneAwarePodDisruptionBudgetSpec) { s.MaxUnavailable = &n }
}

func percent(n int32) func(*zonesv1.ZoneAwarePodDisruptionBudgetSpec) {
	return func(s *zonesv1.ZoneAwarePodDisruptionBudgetSpec) { s.MaxUnavailablePercentage = &n }
}

func byPartition(s *zonesv1.ZoneAwarePodDisruptionBudgetSpec) {
	s.PodNamePartitionRegex = `zone-[a-z]-([0-9]+)`
}

// neverBack makes Pods that are created from now on stay away from being ready.
func neverBack(s *sts) { s.Spec.Template.Annotations = map[string]string{behavior: "never-ready"} }

// evict asks for an eviction as kubectl drain does.
func (w *world) evict(pod string, options ...client.SubResourceCreateOption) error {
	w.t.Helper()
	obj := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: pod}}
	return w.client.SubResource("eviction").Create(w.t.Context(), obj, &policyv1.Eviction{}, options...)
}

// three zones whose Pods do not come back ready once they are gone.
func (w *world) three(replicas int32) {
	w.t.Helper()
	w.group(zone("zone-a", replicas), zone("zone-b", replicas), zone("zone-c", replicas))
	for _, name := range []string{"zone-a", "zone-b", "zone-c"} {
		w.edit(name, neverBack)
	}
	for _, name := range []string{"zone-a", "zone-b", "zone-c"} {
		w.ready(name, int(replicas)) // and the edit was seen
	}
}

func wantRefused(t *testing.T, err error, code int32, text string) {
	t.Helper()
	wantError(t, err, text)
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Code != code {
		t.Errorf("code %d, want %d: %v", status.Status().Code, code, err)
	}
}

func TestEvictionsByZone(t *testing.T) {
	w := newWorld(t)
	w.guarded()
	w.three(3)
	w.create(budget(most(2)))
	wantNo(t, w.evict("zone-a-0"))
	w.gone("zone-a-0")
	wantRefused(t, w.evict("zone-b-0"), 429, " in zone-a")
	wantNo(t, w.evict("zone-a-1"))
	w.gone("zone-a-1")
	wantRefused(t, w.evict("zone-a-2"), 429, "2 pods not ready in zone-a")
	if l := w.status().Lock; l == nil || l.Holder != "eviction/ingester" || l.Zone != "zone-a" {
		t.Errorf("lock: %+v", l)
	}
}

// gone waits until a Pod was replaced by one that is not ready.
func (w *world) gone(name string) {
	w.t.Helper()
	testenv.Eventually(w.t, func(ctx context.Context) error {
		pod := &corev1.Pod{}
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, pod); err != nil {
			return err
		}
		if pod.DeletionTimestamp != nil || pod.Annotations[behavior] == "" || pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("%s is as it was", name)
		}
		return nil
	})
}

func TestEvictionsByPartition(t *testing.T) {
	w := newWorld(t)
	w.guarded()
	w.three(3)
	w.create(budget(most(1), byPartition))
	wantNo(t, w.evict("zone-a-0"))
	wantNo(t, w.evict("zone-b-1"))
	w.gone("zone-a-0")
	wantRefused(t, w.evict("zone-c-0"), 429, "1 pod not ready in partition 0")
	wantNo(t, w.evict("zone-c-2"))
	if l := w.status().Lock; l == nil || l.Zone != "" {
		t.Errorf("lock: %+v", l)
	}
}

func TestCrossZoneEvictionDelay(t *testing.T) {
	w := newWorld(t)
	w.guarded()
	w.group(zone("zone-a", 2), zone("zone-b", 2))
	w.create(budget(byPartition, func(s *zonesv1.ZoneAwarePodDisruptionBudgetSpec) { s.CrossZoneEvictionDelay = "1h" }))
	wantRefused(t, w.evict("zone-a-0"), 429, "1 pod not ready in partition 0")
}

func TestRefusedEvictions(t *testing.T) {
	for name, test := range map[string]struct {
		budget  []*zonesv1.ZoneAwarePodDisruptionBudget
		evictee string
		code    int32
		want    string
	}{
		"a budget of zero":            {[]*zonesv1.ZoneAwarePodDisruptionBudget{budget(most(0))}, "zone-a-0", 403, "max unavailable = 0"},
		"a percentage of zero":        {[]*zonesv1.ZoneAwarePodDisruptionBudget{budget(percent(0))}, "zone-a-0", 403, "max unavailable = 0"},
		"two budgets":                 {[]*zonesv1.ZoneAwarePodDisruptionBudget{budget(), second()}, "zone-a-0", 400, "multiple zoned pod disruption budgets found for pod"},
		"one zone":                    {[]*zonesv1.ZoneAwarePodDisruptionBudget{budget(only("zone-a"))}, "zone-a-0", 400, "minimum number of StatefulSets not found"},
		"no partition":                {[]*zonesv1.ZoneAwarePodDisruptionBudget{budget(other)}, "zone-a-0", 400, "failed to extract partition from pod Name regular expression"},
		"a Pod that does not exist":   {[]*zonesv1.ZoneAwarePodDisruptionBudget{budget()}, "zone-a-7", 400, "not found"},
		"one that has no StatefulSet": {[]*zonesv1.ZoneAwarePodDisruptionBudget{budget()}, "orphan", 403, "unable to find a StatefulSet pod owner"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.guarded()
			w.group(zone("zone-a", 2), zone("zone-b", 2))
			w.create(orphan())
			w.running("orphan")
			for _, b := range test.budget {
				w.create(b)
			}
			wantRefused(t, w.evict(test.evictee), test.code, test.want)
			if s := w.status(); s.Lock != nil {
				t.Errorf("lock: %+v", s.Lock)
			}
		})
	}
}

func second() *zonesv1.ZoneAwarePodDisruptionBudget {
	b := budget()
	b.Name = "second"
	return b
}

func only(name string) func(*zonesv1.ZoneAwarePodDisruptionBudgetSpec) {
	return func(s *zonesv1.ZoneAwarePodDisruptionBudgetSpec) {
		s.Selector.MatchLabels = map[string]string{"name": name}
	}
}

func other(s *zonesv1.ZoneAwarePodDisruptionBudgetSpec) { s.PodNamePartitionRegex = "other-([0-9]+)" }

func orphan() *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "orphan", Labels: map[string]string{"rollout-group": ingester}}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "x"}}
	return p
}

func (w *world) running(name string) {
	w.t.Helper()
	testenv.Eventually(w.t, func(context.Context) error {
		pod := &corev1.Pod{}
		w.get(name, pod)
		if pod.Status.Phase != corev1.PodRunning {
			return errors.New("it does not run yet")
		}
		return nil
	})
}

// A percentage is of the replicas, rounded down, and at least one.
func TestPercentages(t *testing.T) {
	for share, allowed := range map[int32]int{10: 1, 50: 2, 100: 4} {
		t.Run(strconv.Itoa(int(share)), func(t *testing.T) {
			w := newWorld(t)
			w.guarded()
			w.three(4)
			w.create(budget(percent(share)))
			for i := range 4 {
				name := "zone-a-" + strconv.Itoa(i)
				err := w.evict(name)
				if (err == nil) != (i < allowed) {
					t.Errorf("eviction %d: %v", i, err)
				}
				if err == nil {
					w.gone(name)
				}
			}
		})
	}
}

// Defect 10: rollout-operator records dry runs, and evictions that a native budget then
// refuses; each blocks other zones for two minutes.
func TestDefect10WhatComesToNothingBlocksNoOther(t *testing.T) {
	w := newWorld(t)
	w.guarded()
	w.group(zone("zone-a", 2), zone("zone-b", 2))
	w.create(budget())
	wantNo(t, w.evict("zone-a-0", client.DryRunAll))
	native := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "native"}}
	none := intstr.FromInt32(0)
	native.Spec = policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": "zone-a"}}}
	w.create(native)
	wantRefused(t, w.evict("zone-a-0"), 429, "PodDisruptionBudget native allows no disruption now")
	b := budget()
	w.get(b.Name, b)
	if len(b.Status.DisruptedPods) > 0 || w.status().Lock != nil {
		t.Errorf("recorded: %v, lock %v", b.Status.DisruptedPods, w.status().Lock)
	}
	wantNo(t, w.evict("zone-b-0"))
}

// Defect 11: rollout-operator goes on by a budget that was deleted, or by the older one
// where one of the same name was recreated.
func TestDefect11ABudgetThatIsDeletedOrMadeAgain(t *testing.T) {
	w := newWorld(t)
	w.guarded()
	w.three(2)
	first := budget(most(0))
	w.create(first)
	wantRefused(t, w.evict("zone-a-0"), 403, "max unavailable = 0")
	wantNo(t, w.client.Delete(t.Context(), first))
	w.create(budget(most(1)))
	wantNo(t, w.evict("zone-a-0"))
	w.gone("zone-a-0")
	wantRefused(t, w.evict("zone-b-0"), 429, " in zone-a")
	wantNo(t, w.client.Delete(t.Context(), budgetIn(w.namespace)))
	wantNo(t, w.evict("zone-b-0"))
}

func budgetIn(namespace string) *zonesv1.ZoneAwarePodDisruptionBudget {
	b := budget()
	b.Namespace = namespace
	return b
}

func TestARolloutKeepsEvictionsWaiting(t *testing.T) {
	w := newWorld(t)
	w.guarded()
	w.group(zone("zone-a", 2), zone("zone-b", 2))
	w.create(budget())
	g := &v1alpha1.RolloutGroup{}
	w.get(ingester, g)
	g.Status.Lock = &v1alpha1.Lock{Holder: "rollout/ingester", Purpose: v1alpha1.PurposeRollout, Zone: "zone-b", Since: metav1.NewMicroTime(time.Now())}
	wantNo(t, w.client.Status().Update(t.Context(), g))
	wantRefused(t, w.evict("zone-a-0"), 429, "the lock is held by rollout/ingester for rollout of zone-b since ")
}

// Twenty clients drain all zones at the same time, by the real eviction API. Pods that are gone
// do not come back ready, so the budget is exactly what can go through.
func TestTwentyClientsEvictParallel(t *testing.T) {
	for name, test := range map[string]struct {
		budget *zonesv1.ZoneAwarePodDisruptionBudget
		// broken says which evictions together are too many, empty if none are.
		broken func(evicted []string) string
		want   int
	}{
		"by zone": {budget(most(2)), func(evicted []string) string {
			zones := map[string]int{}
			for _, pod := range evicted {
				zones[pod[:len("zone-a")]]++
			}
			if len(zones) > 1 {
				return "two zones were disrupted"
			}
			return ""
		}, 2},
		"by partition": {budget(most(1), byPartition), func(evicted []string) string {
			partitions := map[string]int{}
			for _, pod := range evicted {
				if partitions[pod[len("zone-a-"):]]++; partitions[pod[len("zone-a-"):]] > 1 {
					return "a partition was disrupted twice"
				}
			}
			return ""
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.guarded()
			w.three(4)
			w.create(test.budget)
			evicted := w.drain(20)
			if why := test.broken(evicted); why != "" || len(evicted) != test.want {
				t.Errorf("%s; evicted %v, want %d", why, evicted, test.want)
			}
		})
	}
}

// isRefusal is true of what a client that drains nodes has to live with: it tries again.
func isRefusal(err error) bool {
	isReplaced := apierrors.IsConflict(err)                  // by the time it was admitted
	isLate := strings.Contains(err.Error(), "had no answer") // of a busy machine
	return isReplaced || isLate || apierrors.IsTooManyRequests(err) || strings.Contains(err.Error(), "not found")
}

// drain lets clients evict the Pods of three zones of four, each client all of them in
// an order of its own, until a whole turn brought nothing. It returns what was evicted.
func (w *world) drain(clients int) []string {
	var (
		mu      sync.Mutex
		evicted []string
		group   sync.WaitGroup
	)
	for c := range clients {
		group.Go(func() {
			for i := range 12 {
				n := (i + c*7) % 12
				pod := fmt.Sprintf("zone-%c-%d", 'a'+n/4, n%4)
				if w.isBack(pod) {
					continue
				}
				err := w.evict(pod)
				mu.Lock()
				if err == nil && !slices.Contains(evicted, pod) {
					evicted = append(evicted, pod)
				}
				mu.Unlock()
				if err != nil && !isRefusal(err) {
					w.t.Error(err)
				}
			}
		})
	}
	group.Wait()
	return evicted
}

// isBack is true of a Pod that was replaced, or is being replaced out.
func (w *world) isBack(name string) bool {
	pod := &corev1.Pod{}
	err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, pod)
	return err != nil || pod.Annotations[behavior] != "" || pod.DeletionTimestamp != nil
}

// Defect 12: rollout-operator hangs at its start where the kind of its budgets is not
// installed.
func TestDefect12WithoutTheKinds(t *testing.T) {
	t.Parallel()
	cp := testenv.Own(t, controlplane.Options{Nodes: 1})
	w := newWorldOn(t, cp, "default")
	routes := w.routesOn(cp)
	w.create(orphan())
	w.running("orphan")
	response := routes["/admission/pod-eviction"].Handle(t.Context(), evictionOf("default", "orphan"))
	if !response.Allowed {
		t.Errorf("%+v", response.Result)
	}
}
