package zones_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/rollout"
)

// bothWays runs a test for groups that hold themselves, and for groups that are
// held by their partition.
func bothWays(t *testing.T, test func(*testing.T, *world, string)) {
	for _, strategy := range []string{onDelete, rollingUpdate} {
		t.Run(strategy, func(t *testing.T) { test(t, newWorld(t), strategy) })
	}
}

// goes checks the order of the zones and how many Pods were taken.
func (w *world) goes(pods int, order ...string) *testimony {
	w.t.Helper()
	testimony := w.witness.testify()
	if !slices.Equal(testimony.order, order) {
		w.t.Errorf("zones went in the order %v, want %v", testimony.order, order)
	}
	if len(testimony.gone) != pods {
		w.t.Errorf("%d Pods were taken, want %d: %v", len(testimony.gone), pods, testimony.gone)
	}
	return testimony
}

// taken checks how many Pods were taken.
func (w *world) taken(pods int) {
	w.t.Helper()
	if gone := w.witness.testify().gone; len(gone) != pods {
		w.t.Errorf("%d Pods were taken, want %d: %v", len(gone), pods, gone)
	}
}

func TestRollsOneZoneAtATime(t *testing.T) {
	t.Parallel()
	bothWays(t, func(_ *testing.T, w *world, strategy string) {
		w.manage()
		w.settles(strategy)
		w.roll("v2")
		w.complete("v2")
		w.goes(9, "zone-a", "zone-b", "zone-c")
	})
}

// Two writes for each Pod that is deleted: one permits it, one does it. Three for
// each zone that is held by its partition: permit, open, hold again. And one that
// says that it is over, since only then the lock is free.
func TestWritesAreCounted(t *testing.T) {
	t.Parallel()
	for strategy, writes := range map[string]int{onDelete: 2*9 + 1, rollingUpdate: 3*3 + 1} {
		t.Run(strategy, func(t *testing.T) {
			w := newWorld(t)
			w.options.StatusDelay = time.Hour // no load makes it pass
			w.manage()
			w.settles(strategy)
			w.requests.Reset()
			ended := metrics.Rollouts.WithLabelValues(metrics.RingZones, string(rollout.OutcomeComplete))
			before := testutil.ToFloat64(ended)
			w.roll("v2")
			w.complete("v2")
			if got := w.requests.Writes(); len(got) != writes {
				t.Errorf("%d writes, want %d: %v", len(got), writes, short(got))
			}
			if len(w.reads()) > 0 {
				t.Errorf("reads: %v", short(w.reads()))
			}
			w.rests()
			if testutil.ToFloat64(ended) <= before { // other tests roll, too
				t.Error("the metrics do not count the rollout")
			}
		})
	}
}

func short(requests []fault.Request) (s []string) {
	for _, r := range requests {
		s = append(s, r.Verb+" "+r.Resource+"/"+r.Name)
	}
	return s
}

// reads are requests that are neither writes nor watches.
func (w *world) reads() (reads []fault.Request) {
	for _, r := range w.requests.Requests() {
		if r.Verb == "get" && r.Resource != "" || r.Verb == "list" {
			reads = append(reads, r)
		}
	}
	return reads
}

// rests makes sure that the manager writes nothing though it observes that the Pods of a zone
// have other labels.
func (w *world) rests() {
	w.t.Helper()
	w.settled()
	w.requests.Reset()
	for _, p := range w.pods("zone-a") {
		w.patch(&p, p.Name, `{"metadata":{"labels":{"note":"touched"}}}`)
	}
	w.barrier.Wait(w.t)
	if got := w.requests.Writes(); len(got) > 0 {
		w.t.Errorf("the manager wrote: %v", short(got))
	}
}

func TestOrderOfZones(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prepare func(*world)
		want    []string
	}{
		"by name": {func(w *world) { w.settles(onDelete, replicas(1)) }, []string{"zone-a", "zone-b", "zone-c"}},
		"by annotation": {func(w *world) {
			w.create(
				zone("zone-a", onDelete, replicas(1)),
				zone("zone-b", onDelete, replicas(1), annotated("spillway.dev/zone-order", "2")),
				zone("zone-c", onDelete, replicas(1), annotated("spillway.dev/zone-order", "1")))
		}, []string{"zone-c", "zone-b", "zone-a"}},
		"by the object's list": {func(w *world) {
			w.create(group(func(s *v1alpha1.RolloutGroupSpec) { s.ZoneOrder = []string{"zone-b", "zone-c"} }))
			w.settles(onDelete, replicas(1))
		}, []string{"zone-b", "zone-c", "zone-a"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.manage()
			test.prepare(w)
			w.complete("v1")
			w.patch(&v1alpha1.RolloutGroup{}, ingester, `{"spec":{"pause":{}}}`) // until all are edited
			w.roll("v2")
			w.patch(&v1alpha1.RolloutGroup{}, ingester, `{"spec":{"pause":null}}`)
			w.complete("v2")
			w.goes(3, test.want...)
		})
	}
}

// group is the group ingester as a user writes it.
func group(change func(*v1alpha1.RolloutGroupSpec)) *v1alpha1.RolloutGroup {
	g := &v1alpha1.RolloutGroup{ObjectMeta: metav1.ObjectMeta{Name: ingester}}
	change(&g.Spec)
	return g
}

func TestMaxUnavailable(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		strategy string
		change   func(*appsv1.StatefulSet)
		spec     *intstr.IntOrString
		allowed  int
	}{
		"a number":                    {strategy: onDelete, change: annotated("rollout-max-unavailable", "2"), allowed: 2},
		"a percentage, rounded down":  {strategy: onDelete, change: annotated("rollout-max-unavailable", " 74% "), allowed: 2},
		"a percentage, at least 1":    {strategy: onDelete, change: annotated("rollout-max-unavailable", "10%"), allowed: 1},
		"the object wins":             {strategy: onDelete, change: annotated("rollout-max-unavailable", "1"), spec: new(intstr.FromString("100%")), allowed: 3},
		"by the controller, a number": {strategy: rollingUpdate, change: annotated("rollout-max-unavailable", "2"), allowed: 2},
		"by the controller, the object wins": {
			strategy: rollingUpdate, change: annotated("rollout-max-unavailable", "100%"), spec: new(intstr.FromInt32(2)), allowed: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if test.spec != nil {
				w.create(group(func(s *v1alpha1.RolloutGroupSpec) { s.MaxUnavailable = test.spec }))
			}
			for _, zone := range []string{"zone-a", "zone-b", "zone-c"} {
				w.witness.allow(zone, test.allowed)
			}
			w.manage()
			w.settles(test.strategy, test.change)
			w.roll("v2")
			w.complete("v2")
			if most := w.goes(9, "zone-a", "zone-b", "zone-c").most; most != test.allowed {
				t.Errorf("at most %d Pods were down at a time, want %d", most, test.allowed)
			}
		})
	}
}

// A Pod that has only just become ready is not built upon yet.
func TestMinReadySeconds(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, w *world, strategy string) {
		w.manage()
		w.create(zone("zone-a", strategy, replicas(2)), zone("zone-b", strategy, replicas(1)))
		w.complete("v1", "zone-a", "zone-b")
		w.patch(&v1alpha1.RolloutGroup{}, ingester, `{"spec":{"minReadySeconds":3600}}`)
		w.barrier.Step(t, 2*time.Hour) // they have been ready for that long
		w.behave("v2", "never-ready", "zone-a", "zone-b")
		order := []string{"zone-a-0", "zone-a-1", "zone-b-0"}
		if strategy == rollingUpdate {
			slices.Reverse(order[:2])
		}
		for i, pod := range order {
			w.becomesReady(pod, "v2")
			w.waitsFor("Progressing", pod+" is ready; soaking until")
			w.taken(i + 1)
			w.barrier.Step(t, 59*time.Minute)
			w.taken(i + 1)
			w.barrier.Step(t, time.Minute)
		}
		w.complete("v2", "zone-a", "zone-b")
		w.goes(3, "zone-a", "zone-b")
	})
}

// Those of the StatefulSet are those of its controller, too, which has the real time.
func TestMinReadySecondsOfTheStatefulSet(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, w *world, strategy string) {
		w.manage()
		two := func(s *appsv1.StatefulSet) { s.Spec.MinReadySeconds = 2 }
		w.create(zone("zone-a", strategy, two, replicas(2)), zone("zone-b", strategy, two, replicas(1)))
		w.complete("v1", "zone-a", "zone-b")
		w.roll("v2", "zone-a", "zone-b")
		w.complete("v2", "zone-a", "zone-b")
		for _, rest := range w.goes(3, "zone-a", "zone-b").rests[1:] {
			if rest.Seconds() < 1 { // the API server's times are whole seconds
				t.Errorf("the next Pod was taken %s after the last one had become ready", rest)
			}
		}
	})
}

func TestSoakBetweenZones(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, w *world, strategy string) {
		w.manage()
		w.settles(strategy, replicas(1))
		w.patch(&v1alpha1.RolloutGroup{}, ingester, `{"spec":{"soak":"1h"}}`)
		zones := []string{"zone-a", "zone-b", "zone-c"}
		w.behave("v2", "never-ready", zones...)
		for i, zone := range zones {
			w.becomesReady(zone+"-0", "v2")
			w.waitsFor("Waiting", zone+" is ready; soaking until")
			w.goes(i+1, zones[:i+1]...)
			w.barrier.Step(t, 59*time.Minute)
			w.goes(i+1, zones[:i+1]...)
			w.barrier.Step(t, time.Minute)
		}
		w.complete("v2")
	})
}

func TestProgressDeadlineAndRetry(t *testing.T) {
	t.Parallel()
	bothWays(t, func(_ *testing.T, w *world, strategy string) {
		w.create(group(func(s *v1alpha1.RolloutGroupSpec) { s.ProgressDeadlineSeconds = new(int32(3600)) }))
		w.manage()
		w.settles(strategy, replicas(2))
		w.behave("v2", "never-ready", "zone-a", "zone-b")
		w.eventually(func() error { return contains(w.images("zone-a"), "v2!") })
		w.waitsFor("Progressing", "zone-a-")
		w.barrier.Step(w.t, 2*time.Hour)
		w.waitsFor("Failed", "zone-a-")
		w.is("Stalled", "True")
		w.event("RolloutStuck")
		if images := w.images("zone-b"); images != "v1 v1" {
			w.t.Errorf("zone-b runs %s", images)
		}
		w.behave("v3", "", "zone-a", "zone-b") // fixed
		w.complete("v3", "zone-a", "zone-b")
		w.event("RolloutResumed")
		w.is("Stalled", "False")
		w.witness.testify()
	})
}

// is makes sure of a condition.
func (w *world) is(condition, status string) {
	w.t.Helper()
	w.settled()
	g := w.group()
	c := apimeta.FindStatusCondition(g.Status.Conditions, condition)
	if c == nil || string(c.Status) != status || c.ObservedGeneration != g.Generation {
		w.t.Errorf("want %s=%s: %+v", condition, status, g.Status.Conditions)
	}
}

func TestPausedZone(t *testing.T) {
	t.Parallel()
	bothWays(t, func(_ *testing.T, w *world, strategy string) {
		w.manage()
		w.settles(strategy, replicas(1))
		w.annotate("zone-b", "grafana.com/rollout-paused", "true")
		w.roll("v2")
		w.runs("zone-a: v2", "zone-b: v1", "zone-c: v2")
		w.waitsFor("Paused", "zone-b is paused")
		w.annotate("zone-b", "grafana.com/rollout-paused", "")
		w.complete("v2")
		w.goes(3, "zone-a", "zone-c", "zone-b")
	})
}

func TestPausedGroup(t *testing.T) {
	t.Parallel()
	bothWays(t, func(_ *testing.T, w *world, strategy string) {
		w.manage()
		w.settles(strategy, replicas(1))
		w.patch(&v1alpha1.RolloutGroup{}, ingester, `{"spec":{"pause":{"reason":"on call asked","by":"jane"}}}`)
		w.waitsFor("Complete", "")
		w.roll("v2")
		w.waitsFor("Paused", "on call asked")
		w.event("RolloutPaused")
		w.is("Ready", "False")
		w.is("Stalled", "False")
		w.goes(0)
		w.patch(&v1alpha1.RolloutGroup{}, ingester, `{"spec":{"pause":null}}`)
		w.complete("v2")
		w.event("RolloutResumed")
		w.goes(3, "zone-a", "zone-b", "zone-c")
	})
}

func TestMaintenanceWindows(t *testing.T) {
	t.Parallel()
	bothWays(t, func(_ *testing.T, w *world, strategy string) {
		later := time.Now().UTC().Add(12 * time.Hour)
		w.create(group(func(s *v1alpha1.RolloutGroupSpec) {
			s.MaintenanceWindows = []v1alpha1.MaintenanceWindow{{Schedule: fmt.Sprintf("0 %d * * *", later.Hour()), DurationSeconds: 60}}
		}))
		w.manage()
		w.settles(strategy, replicas(1))
		w.roll("v2")
		w.waitsFor("Waiting", "its next maintenance window opens on")
		w.goes(0)
		w.patch(&v1alpha1.RolloutGroup{}, ingester, `{"spec":{"maintenanceWindows":[{"schedule":"* * * * *","durationSeconds":120,"timeZone":"Asia/Tokyo"}]}}`)
		w.complete("v2")
		w.goes(3, "zone-a", "zone-b", "zone-c")
	})
}

func TestNewerRevisionMidRollout(t *testing.T) {
	t.Parallel()
	bothWays(t, func(_ *testing.T, w *world, strategy string) {
		w.manage()
		w.settles(strategy)
		w.behave("v2", "never-ready", "zone-a", "zone-b", "zone-c")
		w.eventually(func() error { return contains(w.images("zone-a"), "v2!") })
		w.behave("v3", "", "zone-a", "zone-b", "zone-c")
		w.complete("v3")
		// One that broke at v2 may come back at v1 in between, if its zone is held; and kwok may
		// delete it, which deletes by name alone.
		if n := len(w.witness.testify().gone); n < 9 || n > 11 {
			w.t.Errorf("%d Pods were taken, want 10, one more or one less", n)
		}
		if history := w.group().Status.History; len(history) != 2 || history[0].Outcome != "Complete" || history[1].Outcome != "Superseded" || history[1].UndoneBy != w.writer("zone-a") || history[0].ChangedBy != w.writer("zone-a") || w.group().Status.Rollout.ChangedBy != w.writer("zone-a") {
			w.t.Errorf("history %+v", history)
		}
	})
}

// writer is who has written the template of a zone, but for Spillway; empty if it was created in that second.
func (w *world) writer(zone string) string {
	w.t.Helper()
	set := &appsv1.StatefulSet{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: zone}, set); err != nil {
		w.t.Fatal(err)
	}
	set.ManagedFields = slices.DeleteFunc(set.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == kube.FieldOwner })
	_, by := kube.LastWrite(set, "template")
	return by
}

func contains(text, part string) error {
	if !strings.Contains(text, part) {
		return fmt.Errorf("%q has no %q", text, part)
	}
	return nil
}

func TestRevertMidRollout(t *testing.T) {
	t.Parallel()
	bothWays(t, func(_ *testing.T, w *world, strategy string) {
		w.manage()
		w.settles(strategy)
		w.behave("v2", "crash", "zone-a", "zone-b", "zone-c")
		w.eventually(func() error { return contains(w.images("zone-a"), "v2!") })
		w.saysEventually("Progressing", "CrashLoopBackOff")
		w.behave("v1", "", "zone-a", "zone-b", "zone-c")
		w.complete("v1")
		w.goes(2, "zone-a")
	})
}

func TestZoneWithoutReplicas(t *testing.T) {
	t.Parallel()
	bothWays(t, func(_ *testing.T, w *world, strategy string) {
		w.manage()
		w.create(zone("zone-a", strategy, replicas(0)), zone("zone-b", strategy, replicas(1)))
		w.complete("v1", "zone-a", "zone-b")
		w.roll("v2", "zone-a", "zone-b")
		w.complete("v2", "zone-a", "zone-b")
		w.goes(1, "zone-b")
	})
}

func TestSetsComeAndGoMidRollout(t *testing.T) {
	t.Parallel()
	bothWays(t, func(_ *testing.T, w *world, strategy string) {
		w.manage()
		w.settles(strategy, replicas(2))
		w.behave("v2", "never-ready", "zone-a")
		w.eventually(func() error { return contains(w.images("zone-a"), "v2!") })
		w.roll("v2", "zone-b", "zone-c")
		w.create(zone("zone-0", strategy, replicas(1)))
		w.runs("zone-0: v1", "zone-b: v1 v1")
		w.remove(&appsv1.StatefulSet{}, "zone-a")
		w.complete("v2", "zone-b", "zone-c")
		w.roll("v2", "zone-0")
		w.complete("v2", "zone-0", "zone-b", "zone-c")
		w.witness.testify()
	})
}

// The controller of an OrderedReady set waits for ever for a Pod of a revision
// that is broken, also once the template is fixed.
func TestOrderedReadySetIsNotStuck(t *testing.T) {
	t.Parallel()
	bothWays(t, func(_ *testing.T, w *world, strategy string) {
		ordered := func(s *appsv1.StatefulSet) { s.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement }
		w.manage()
		w.settles(strategy, ordered)
		w.behave("v2", "crash", "zone-a", "zone-b", "zone-c")
		w.eventually(func() error { return contains(w.images("zone-a"), "v2!") })
		w.behave("v3", "", "zone-a", "zone-b", "zone-c")
		w.complete("v3")
		w.goes(10, "zone-a", "zone-b", "zone-c")
	})
}

// A Pod that is not ready for a moment comes back. To replace it while another zone is
// disrupted would take it away.
func TestAPodThatMayRecoverWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, w *world, strategy string) {
		w.manage()
		w.settles(strategy, replicas(2))
		w.behave("v2", "never-ready", "zone-a", "zone-b", "zone-c")
		w.eventually(func() error { return contains(w.images("zone-a"), "v2!") })
		w.breakPod("zone-b-0")
		w.waitsFor("Progressing", "")
		if images := w.images("zone-b"); images != "v1! v1" {
			t.Errorf("zone-b runs %s while zone-a is disrupted", images)
		}
		w.behave("v3", "", "zone-a", "zone-b", "zone-c")
		w.complete("v3", "zone-a", "zone-b", "zone-c")
	})
}

// After stuckAfterSeconds a Pod does not wait for others any more: of two zones that wait
// for each other, the first goes.
func TestAPodThatStaysUnreadyIsReplacedOutOfTurn(t *testing.T) {
	t.Parallel()
	bothWays(t, func(_ *testing.T, w *world, strategy string) {
		w.create(group(func(s *v1alpha1.RolloutGroupSpec) { s.StuckAfterSeconds = new(int32(3600)) }))
		w.manage()
		w.settles(strategy, replicas(2))
		w.breakPod("zone-a-0")
		w.breakPod("zone-b-0")
		w.settled() // neither is taken for the only one
		w.roll("v2")
		w.waitsFor("Waiting", "zone-b-0 is not ready since")
		w.goes(0)
		w.barrier.Step(w.t, 2*time.Hour)
		w.complete("v2")
		w.witness.testify()
	})
}
