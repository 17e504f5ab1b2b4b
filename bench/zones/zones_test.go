package zones_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// TestOneGroup rolls three zones again and again, and measures the time from
// "this zone is Ready" to the first write to the next, and the API calls a Pod.
func TestOneGroup(t *testing.T) {
	for _, strategy := range []appsv1.StatefulSetUpdateStrategyType{appsv1.OnDeleteStatefulSetStrategyType, appsv1.RollingUpdateStatefulSetStrategyType} {
		t.Run(string(strategy), func(t *testing.T) {
			w := newWorld(t)
			w.group("ingester", strategy, podsPerZone)
			w.manage()
			pods := len(theZones) * podsPerZone
			w.settled("", pods, "ingester")
			w.look.guard(podsPerZone, 1)
			var idle []time.Duration
			w.counted.Reset()
			for i := range rollouts {
				value := fmt.Sprint(i)
				w.clock.reset()
				w.edit("ingester", value)
				w.settled(value, pods, "ingester")
				idle = append(idle, w.idle(value)...)
			}
			calls, asked := w.calls(), w.counted.Requests()
			w.look.verdict(t)
			w.quiet()
			slices.Sort(idle)
			fmt.Printf("| %s, %d zones of %d Pods, %d rollouts | |\n", strategy, len(theZones), podsPerZone, rollouts)
			fmt.Printf("| from a zone that is Ready to the first write to the next | p50 %s, p99 %s |\n", at(idle, 50), at(idle, 99))
			fmt.Printf("| API calls a Pod | %.2f |\n", float64(calls)/float64(rollouts*pods))
			fmt.Printf("| API calls a zone | %.2f |\n", float64(calls)/float64(rollouts*len(theZones)))
			// What is deleted is written down before; a zone is permitted, opened and held;
			// and the end of a rollout is written, once.
			most := rollouts * (2*pods + 1)
			if strategy == appsv1.RollingUpdateStatefulSetStrategyType {
				// A zone that is open is held, and opened again, while another one that was
				// edited after it is not observed: what is unknown is on the safe side.
				most = rollouts * (3*(len(theZones)+1) + 1)
			}
			if calls > most {
				t.Errorf("%d API calls for %d Pods in %d rollouts, want at most %d: %v", calls, rollouts*pods, rollouts, most, asked)
			}
		})
	}
}

// idle is how long the ring took between two zones.
func (w *world) idle(value string) []time.Duration {
	var idle []time.Duration
	for i := range theZones[1:] {
		ready := w.look.wholeAt("ingester-"+theZones[i], value)
		first := w.clock.at("ingester-" + theZones[i+1])
		if ready.IsZero() || first.IsZero() {
			w.t.Errorf("zone %s was Ready at %s, and zone %s written at %s", theZones[i], ready, theZones[i+1], first)
		}
		idle = append(idle, first.Sub(ready))
	}
	return idle
}

// calls are what the manager asked for, but for watches, Events and leases.
func (w *world) calls() int {
	n := 0
	for _, r := range w.counted.Requests() {
		if r.Verb != "watch" && r.Resource != "events" && r.Resource != "leases" {
			n++
		}
	}
	return n
}

// quiet fails if a converged group costs anything: an annotation that means
// nothing wakes the ring up, and it does nothing.
func (w *world) quiet() {
	w.t.Helper()
	w.counted.Reset()
	w.group("probe", appsv1.OnDeleteStatefulSetStrategyType, 1)
	testenv.Eventually(w.t, func(ctx context.Context) error { return w.complete(ctx, "probe") })
	for _, r := range w.counted.Requests() {
		if r.Writes() && r.Name == "ingester" {
			w.t.Errorf("a write to a group that is complete: %+v", r)
		}
	}
}

// TestManyGroups changes many groups at the same time. They roll side by side, so that
// all of them together take little longer than the floor, which is the time that a
// client takes that keeps to the same order and reads nothing.
func TestManyGroups(t *testing.T) {
	const replicas = 3
	w := newWorld(t)
	names := make([]string, manyGroups)
	for i := range names {
		names[i] = fmt.Sprintf("group-%03d", i)
		w.group(names[i], appsv1.OnDeleteStatefulSetStrategyType, replicas)
	}
	stop := w.manage()
	pods := manyGroups * len(theZones) * replicas
	w.settled("", pods, names...)
	w.look.guard(replicas, 1)
	one := w.timed("alone", replicas*len(theZones), names[0])
	w.counted.Reset()
	all := w.timed("all", pods, names...)
	calls := w.calls()
	w.look.verdict(t)
	first, last := w.firstWrites(names)
	stop()
	floor := w.byHand("floor", replicas, names...)
	fmt.Printf("| %d groups of %d Pods changed at the same time | %.1f s; one alone %.1f s |\n", manyGroups, replicas*len(theZones), all.Seconds(), one.Seconds())
	fmt.Printf("| the same Pods deleted in the same order by a bare client | %.1f s, ratio %.2f |\n", floor.Seconds(), all.Seconds()/floor.Seconds())
	fmt.Printf("| API calls a Pod | %.2f |\n", float64(calls)/float64(pods))
	fmt.Printf("| from the first group's first write to the last group's | %.2f of the whole |\n", last.Sub(first).Seconds()/all.Seconds())
}

// byHand rolls groups as the ring does, one Pod of a group after the other, by a
// client that knows what there is and writes nothing but deletes.
func (w *world) byHand(value string, replicas int, names ...string) time.Duration {
	w.t.Helper()
	start := time.Now()
	for _, n := range names {
		w.edit(n, value)
	}
	var all sync.WaitGroup
	for _, n := range names {
		all.Go(func() {
			for _, zone := range theZones {
				for i := range replicas {
					w.takeDown(fmt.Sprintf("%s-%s-%d", n, zone, i))
					w.look.await(n+"-"+zone, value, i+1)
				}
			}
		})
	}
	all.Wait()
	return time.Since(start)
}

func (w *world) takeDown(pod string) {
	err := w.client.Delete(w.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: pod}})
	if err != nil {
		w.t.Error(err)
	}
}

// timed rolls groups and returns how long that took.
func (w *world) timed(value string, pods int, names ...string) time.Duration {
	w.t.Helper()
	w.clock.reset()
	start := time.Now()
	for _, n := range names {
		w.edit(n, value)
	}
	w.settled(value, pods, names...)
	return time.Since(start)
}

// firstWrites are when the first and the last group was begun.
func (w *world) firstWrites(names []string) (first, last time.Time) {
	for _, n := range names {
		at := w.clock.at(n + "-" + theZones[0])
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	return first, last
}

// complete is nil if groups say that they are.
func (w *world) complete(ctx context.Context, names ...string) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "spillway.dev", Version: "v1alpha1", Kind: "RolloutGroupList"})
	if err := w.client.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
		return err
	}
	phases := map[string]string{}
	for i := range list.Items {
		phases[list.Items[i].GetName()], _, _ = unstructured.NestedString(list.Items[i].Object, "status", "phase")
	}
	for _, name := range names {
		if phases[name] != "Complete" {
			return fmt.Errorf("%s is %s", name, phases[name])
		}
	}
	return nil
}

func at(sorted []time.Duration, percent int) time.Duration {
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)].Round(100 * time.Microsecond)
}
