package scaling_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/zones/scaling"
)

const (
	leader  = grafana + "rollout-downscale-leader"
	minTime = grafana + "min-time-between-zones-downscale"
)

func zoneNamed(name string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func templateNamed() *zonesv1.ReplicaTemplate {
	return &zonesv1.ReplicaTemplate{ObjectMeta: metav1.ObjectMeta{Name: ingester}}
}

func TestFollowersFollow(t *testing.T) {
	w := newWorld(t)
	w.create(zone("zone-a", 2), zone("zone-b", 1, annotated(leader, "zone-a", minTime, "1h")), zone("zone-c", 1, annotated(leader, "zone-b", minTime, "1h")))
	w.manage()
	for _, name := range []string{"zone-a", "zone-b", "zone-c"} {
		w.replicas(name, 2)
	}
	w.scale(zoneNamed("zone-a"), 1)
	w.replicas("zone-b", 1)
	w.barrier.Step(t, 59*time.Minute)
	if n := *w.set("zone-c").Spec.Replicas; n != 2 {
		t.Errorf("zone-c has %d replicas", n)
	}
	w.barrier.Step(t, time.Minute)
	w.replicas("zone-c", 1)
	w.barrier.Wait(t)
	if s := w.status(); len(s.Downscales) != 2 || s.Lock != nil || s.Downscale != nil {
		t.Errorf("%+v", s)
	}
}

// Performance: rollout-operator does not watch what is mirrored, and sees a change of it
// after minutes. It is written back to.
func TestAMirroredResourceUnderAnAutoscaler(t *testing.T) {
	w := newWorld(t)
	w.create(template(1), zone("zone-a", 1, mirrors), zone("zone-b", 1, mirrors))
	w.manage()
	w.scale(templateNamed(), 3)
	w.replicas("zone-a", 3)
	w.replicas("zone-b", 3)
	w.eventually(func() error {
		r := templateNamed()
		w.get(ingester, r)
		if r.Status.Replicas != 3 {
			return fmt.Errorf("its status says %d", r.Status.Replicas)
		}
		return nil
	})
	w.scale(templateNamed(), 1)
	w.replicas("zone-a", 1)
	w.replicas("zone-b", 1)
}

func TestAResourceOfAnyKindIsMirrored(t *testing.T) {
	w := newWorld(t)
	other := zone("other", 2, func(s *appsv1.StatefulSet) { s.Labels = nil })
	w.create(other, zone("zone-a", 1, annotated(grafana+"rollout-mirror-replicas-from-resource-name", "other",
		grafana+"rollout-mirror-replicas-from-resource-kind", "StatefulSet", grafana+"rollout-mirror-replicas-from-resource-api-version", "apps/v1",
		grafana+"rollout-mirror-replicas-from-resource-write-back", "false")))
	w.manage()
	w.replicas("zone-a", 2)
	w.scale(zoneNamed("other"), 3)
	w.replicas("zone-a", 3)
}

func wantPrepared(pods *testenv.Pods, want ...string) error {
	if got := pods.Prepared(); !slices.Equal(got, want) {
		return fmt.Errorf("prepared: %v, want %v", got, want)
	}
	return nil
}

func TestADelayedDownscale(t *testing.T) {
	w, pods := newWorld(t), testenv.ServePods(t)
	w.create(template(4), zone("zone-a", 4, mirrors, delayed(pods, "1h")))
	w.replicas("zone-a", 4)
	w.manage()
	w.eventually(func() error { // each Pod is called once to stay
		if n := pods.Calls()["DELETE zone-a-3"]; n != 1 {
			return fmt.Errorf("%d calls", n)
		}
		return nil
	})
	w.scale(templateNamed(), 1)
	w.eventually(func() error { return wantPrepared(pods, "zone-a-1", "zone-a-2", "zone-a-3") })
	pods.Since("zone-a-3", 2*time.Hour) // the last two of them have been for long enough
	pods.Since("zone-a-2", 2*time.Hour)
	w.poke("zone-a")
	w.replicas("zone-a", 4)
	w.restart()
	w.replicas("zone-a", 2)
}

// poke changes an annotation that means nothing, so that the group is looked at.
func (w *world) poke(name string) {
	w.t.Helper()
	set := w.set(name)
	changed := set.DeepCopy()
	changed.Annotations["poked"] = "yes"
	if err := w.client.Patch(w.t.Context(), changed, client.MergeFrom(set)); err != nil {
		w.t.Fatal(err)
	}
}

// restart runs another manager, which knows nothing but what can be read and asked.
func (w *world) restart() { w.managed(w.requests) }

// Author-admitted by rollout-operator: of 10, 9 and 10 again a Pod remains prepared.
func TestTenNineTenLeavesNoPodPrepared(t *testing.T) {
	w, pods := newWorld(t), testenv.ServePods(t)
	w.create(template(10), zone("zone-a", 10, mirrors, delayed(pods, "1h")))
	w.replicas("zone-a", 10)
	w.manage()
	w.scale(templateNamed(), 9)
	w.eventually(func() error { return wantPrepared(pods, "zone-a-9") })
	w.scale(templateNamed(), 10)
	w.eventually(func() error { return wantPrepared(pods) })
	w.replicas("zone-a", 10)
}

// Performance: rollout-operator calls all Pods on every reconcile, though nothing is
// pending; and one that is slow delays all others.
func TestNoPodIsCalledWhenNothingIsPending(t *testing.T) {
	w, pods, slow := newWorld(t), testenv.ServePods(t), testenv.ServePods(t)
	slow.Answer("slow-0", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	elsewhere := func(s *appsv1.StatefulSet) { s.Labels["rollout-group"] = "slow" }
	w.create(template(2), zone("zone-a", 2, mirrors, delayed(pods, "1h")), zone("slow", 2, mirrors, delayed(slow, "1h"), elsewhere))
	w.replicas("zone-a", 2)
	w.replicas("slow", 2)
	w.manage()
	w.eventually(func() error {
		if len(pods.Calls()) < 2 || len(slow.Calls()) < 2 {
			return errors.New("not all were called yet")
		}
		return nil
	})
	before := pods.Calls()
	w.scale(templateNamed(), 3)
	w.replicas("zone-a", 3)
	w.eventually(func() error {
		if pods.Calls()["DELETE zone-a-2"] == 0 {
			return errors.New("the new Pod does not know that it stays")
		}
		return nil
	})
	after := pods.Calls()
	for call, n := range before {
		if after[call] != n {
			t.Errorf("%s: %d calls, before %d", call, after[call], n)
		}
	}
}

// What a Pod does not answer keeps its zone as it is.
func TestADelayedDownscaleWaitsForAllPods(t *testing.T) {
	for name, how := range map[string]http.HandlerFunc{
		"no timestamp": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) },
		"failure":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"20 MB":        func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(strings.Repeat(" ", 20<<20))) },
	} {
		t.Run(name, func(t *testing.T) {
			w, pods := newWorld(t), testenv.ServePods(t)
			w.create(template(3), zone("zone-a", 3, mirrors, delayed(pods, "1h")))
			w.replicas("zone-a", 3)
			pods.Answer("zone-a-1", how)
			pods.Since("zone-a-2", 2*time.Hour)
			w.scale(templateNamed(), 1)
			w.manage()
			w.eventually(func() error {
				if n := pods.Calls()["POST zone-a-1"]; n < 2 {
					return fmt.Errorf("%d tries", n)
				}
				return nil
			})
			w.replicas("zone-a", 3)
			pods.Answer("zone-a-1", nil)
			w.replicas("zone-a", 2)
		})
	}
}

// A downscale that the guards admitted is noted, and the lock given back.
func TestADownscaleIsSettledOnceItIsSeen(t *testing.T) {
	w, pods := newWorld(t), testenv.ServePods(t)
	w.guarded()
	w.create(zone("zone-a", 3, prepared(pods)), zone("zone-b", 3, annotated(leader, "zone-a", minTime, "1h"), prepared(pods)))
	w.replicas("zone-a", 3)
	w.replicas("zone-b", 3)
	w.manage()
	w.scale(zoneNamed("zone-a"), 2)
	w.eventually(func() error {
		s := w.status()
		if s.Lock != nil || s.Downscale != nil || len(s.Downscales) != 1 || s.Downscales[0].Zone != "zone-a" {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	w.replicas("zone-a", 2)
	w.replicas("zone-b", 3)
	if err := wantPrepared(pods, "zone-a-2"); err != nil {
		t.Error(err)
	}
	// Up again: the new Pod is not the one that was prepared, and must not be held for it.
	w.scale(zoneNamed("zone-a"), 3)
	w.eventually(func() error {
		if s := w.status(); s.Downscales[0].Prepares {
			return errors.New("it was not looked at yet")
		}
		return nil
	})
}

// A downscale that was admitted, and of which the write never came, is undone.
func TestADownscaleThatNeverCameIsUndone(t *testing.T) {
	w, pods := newWorld(t), testenv.ServePods(t)
	w.create(zone("zone-a", 3, prepared(pods)))
	w.replicas("zone-a", 3)
	pods.Since("zone-a-2", 0)
	now := metav1.NowMicro()
	g := &v1alpha1.RolloutGroup{}
	w.get(ingester, g)
	g.Status.Lock = &v1alpha1.Lock{Holder: "downscale/zone-a", Purpose: v1alpha1.PurposeDownscale, Zone: "zone-a", Since: now}
	g.Status.Downscale = &v1alpha1.Downscale{Zone: "zone-a", UID: w.set("zone-a").UID, From: 3, To: 2, At: now, AdmittedAt: &now, Prepares: true}
	if err := w.client.Status().Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	w.manage()
	w.barrier.Wait(t)
	if err := wantPrepared(pods, "zone-a-2"); err != nil {
		t.Error("it is undone while it may come:", err)
	}
	w.barrier.Step(t, 2*time.Minute)
	w.undone(pods)
}

// undone makes sure that no Pod is prepared, and no downscale written down.
func (w *world) undone(pods *testenv.Pods) {
	w.t.Helper()
	if err := wantPrepared(pods); err != nil {
		w.t.Error(err)
	}
	if s := w.status(); s.Lock != nil || s.Downscale != nil || len(s.Downscales) > 0 {
		w.t.Errorf("%+v", s)
	}
}

// A downscale that was admitted, and that another webhook refused, is seen not to come as soon
// as its StatefulSet is changed: an edit of its template does not wait until the request could
// not be under way any more.
func TestADownscaleThatCannotComeIsUndone(t *testing.T) {
	w, pods := newWorld(t), testenv.ServePods(t)
	w.create(zone("zone-a", 3, prepared(pods)))
	w.replicas("zone-a", 3)
	now := metav1.NewMicroTime(w.clock.Now())
	pods.Since("zone-a-2", 0)
	set, g := w.set("zone-a"), &v1alpha1.RolloutGroup{}
	expires := metav1.NewMicroTime(now.Add(time.Hour))
	w.get(ingester, g)
	g.Status.Lock = &v1alpha1.Lock{Holder: "downscale/zone-a", Purpose: v1alpha1.PurposeDownscale, Zone: "zone-a", Since: now, Expires: &expires}
	g.Status.Downscale = &v1alpha1.Downscale{
		Zone: "zone-a", UID: set.UID, From: 3, To: 2, At: now, AdmittedAt: &now, ResourceVersion: set.ResourceVersion, Prepares: true,
	}
	if err := w.client.Status().Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	changed := set.DeepCopy()
	changed.Spec.Template.Labels["edited"] = "true"
	if err := w.client.Patch(t.Context(), changed, client.MergeFrom(set)); err != nil {
		t.Fatal(err)
	}
	w.manage()
	w.barrier.Step(t, 20*time.Second) // a request lasts longer
	w.undone(pods)
}

// The lock of evictions is given back when they were seen.
func TestTheLockOfEvictionsIsGivenBack(t *testing.T) {
	w := newWorld(t)
	w.guarded()
	pods := func(s *appsv1.StatefulSet) { s.Spec.Template.Labels["rollout-group"] = ingester }
	w.create(zone("zone-a", 2, pods), zone("zone-b", 2, pods))
	w.replicas("zone-a", 2)
	w.replicas("zone-b", 2)
	w.manage()
	b := &zonesv1.ZoneAwarePodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	b.Spec.Selector.MatchLabels = map[string]string{"rollout-group": ingester}
	w.create(b)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "zone-a-0"}}
	if err := w.client.SubResource("eviction").Create(t.Context(), pod, &policyv1.Eviction{}); err != nil {
		t.Fatal(err)
	}
	w.eventually(func() error {
		if s := w.status(); s.Lock != nil || s.Seen == nil || s.Seen.Pods == "" {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
}

// The manager stops before and after every write of a prepared and of a delayed
// downscale; the next one ends it the same way.
func TestFaultTheManagerStopsAtEveryWrite(t *testing.T) {
	for _, when := range []fault.When{fault.Before, fault.After} {
		for n := 1; n <= 5; n++ {
			t.Run(fmt.Sprintf("%s write %d", when, n), func(t *testing.T) {
				w, pods := newWorld(t), testenv.ServePods(t)
				w.create(template(3), zone("zone-a", 3, mirrors, delayed(pods, "1s"), prepared(pods)))
				w.replicas("zone-a", 3)
				inj := fault.New()
				stop := w.managed(inj)
				inj.StopAt(n, when)
				w.scale(templateNamed(), 2)
				w.eventually(func() error {
					select {
					case <-inj.Stopped():
						return nil
					default:
					}
					if *w.set("zone-a").Spec.Replicas == 2 { // there were fewer writes
						return nil
					}
					return errors.New("it goes on")
				})
				stop()
				w.manage()
				w.replicas("zone-a", 2)
				w.eventually(func() error { return onlyGone(pods) })
				w.scale(templateNamed(), 3)
				w.replicas("zone-a", 3)
				w.eventually(func() error { return wantPrepared(pods) })
			})
		}
	}
}

// onlyGone is nil if no Pod that is there is prepared.
func onlyGone(pods *testenv.Pods) error {
	for _, pod := range pods.Prepared() {
		if pod != "zone-a-2" {
			return fmt.Errorf("%s is prepared", pod)
		}
	}
	return nil
}

// The manager stops before and after every write of a preparation by the guards: the
// downscale is refused, and the next manager tells the Pods otherwise.
func TestFaultTheManagerStopsWhileItPrepares(t *testing.T) {
	for _, when := range []fault.When{fault.Before, fault.After} {
		for n := 1; n <= 2; n++ {
			t.Run(fmt.Sprintf("%s write %d", when, n), func(t *testing.T) {
				w, pods := newWorld(t), testenv.ServePods(t)
				w.guarded()
				w.create(zone("zone-a", 3, prepared(pods)), zone("zone-b", 1))
				w.replicas("zone-a", 3)
				w.replicas("zone-b", 1)
				inj := fault.New()
				stop := w.managed(inj)
				w.webhooks.WaitServed(t)
				inj.StopAt(n, when)
				if err := w.lower("zone-a", 1); err == nil {
					t.Error("it was admitted by a manager that had stopped")
				}
				stop()
				w.manage()
				w.barrier.Step(t, 3*time.Minute)
				w.undone(pods)
				w.replicas("zone-a", 3)
				w.eventually(func() error { return w.lower("zone-a", 1) })
				w.replicas("zone-a", 1)
			})
		}
	}
}

// A follower whose spec.replicas is in Git: another client sets back what Spillway writes, by an
// apply that leaves the note, or by a replace that takes it away. Each time Pods went, and the group
// said that all was up to date. It is left as it is, and said.
func TestPodsDoNotGoForAFightAboutReplicas(t *testing.T) {
	for name, again := range map[string]func(*world) error{
		"apply": func(w *world) error {
			return w.client.Patch(w.t.Context(), w.set("zone-b"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":4}}`)))
		},
		"replace": func(w *world) error {
			set := w.set("zone-b")
			maps.DeleteFunc(set.Annotations, func(key, _ string) bool { return strings.HasPrefix(key, "spillway.dev/") })
			set.Spec.Replicas = new(int32(4))
			return w.client.Update(w.t.Context(), set)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(zone("zone-a", 2), zone("zone-b", 4, annotated(leader, "zone-a", minTime, "1ms")))
			w.manage()
			w.replicas("zone-b", 2)
			w.eventually(func() error { return again(w) })
			w.replicas("zone-b", 4)
			w.barrier.Wait(t)
			before := w.uids("zone-b")
			for range 8 { // in 30 s
				w.barrier.Step(t, 4*time.Second)
				w.eventually(func() error { return again(w) })
				w.barrier.Wait(t)
			}
			if after := w.uids("zone-b"); *w.set("zone-b").Spec.Replicas != 4 || !slices.Equal(before, after) {
				t.Errorf("Pods went: %v, now %v", before, after)
			}
			const says = "another client sets its replicas back from 2 to 4"
			c := apimeta.FindStatusCondition(w.status().Conditions, scaling.ConditionContested)
			if c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, says) {
				t.Errorf("conditions: %+v", w.status().Conditions)
			}
			w.warned("zone-b", string(scaling.ReasonContested), says)
			w.scale(zoneNamed("zone-a"), 4)
			w.barrier.Wait(t)
			if c := apimeta.FindStatusCondition(w.status().Conditions, scaling.ConditionContested); c != nil {
				t.Errorf("it says still: %+v", c)
			}
		})
	}
}

// uids are those of the Pods of a zone.
func (w *world) uids(name string) []string {
	w.t.Helper()
	pods := &corev1.PodList{}
	if err := w.client.List(w.t.Context(), pods, client.InNamespace(w.namespace), client.MatchingLabels{"name": name}); err != nil {
		w.t.Fatal(err)
	}
	var uids []string
	for i := range pods.Items {
		uids = append(uids, pods.Items[i].Name+" "+string(pods.Items[i].UID))
	}
	slices.Sort(uids)
	return uids
}

// warned waits for an Event about an object.
func (w *world) warned(name, reason, text string) {
	w.t.Helper()
	w.eventually(func() error {
		events := &corev1.EventList{}
		if err := w.client.List(w.t.Context(), events, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return e.Reason == reason && e.InvolvedObject.Name == name && strings.Contains(e.Message, text)
		}) {
			return fmt.Errorf("no Event %s about %s", reason, name)
		}
		return nil
	})
}

// lower asks once for fewer replicas.
func (w *world) lower(name string, n int32) error {
	set := w.set(name)
	changed := set.DeepCopy()
	changed.Spec.Replicas = &n
	return w.client.Patch(w.t.Context(), changed, client.MergeFrom(set))
}

// A zone is not scaled down while Pods that were scaled away in another one have not gone,
// whatever the status of that one says.
func TestADownscaleWaitsForPodsThatGo(t *testing.T) {
	w := newWorld(t)
	w.create(
		zone("zone-a", 2, func(s *appsv1.StatefulSet) { s.Spec.Template.Finalizers = []string{"example.test/stays"} }),
		zone("zone-b", 2, annotated(leader, "zone-a", minTime, "1ms")))
	stop := w.manage()
	w.replicas("zone-a", 2)
	w.replicas("zone-b", 2)
	w.scale(zoneNamed("zone-a"), 1)
	w.eventually(func() error {
		p, err := scaling.Look(t.Context(), w.client, scaling.Options{Now: w.clock.Now}, w.namespace, ingester)
		if told := strings.Join(p.Explain(), "\n"); err != nil || told != "zone-b is waiting: zone-a is unavailable (zone-a-1 is terminating)" {
			return fmt.Errorf("%q %w", told, err)
		}
		return nil
	})
	stop()
	w.manage() // one that begins now decides the same
	w.create(zone("other", 1, func(s *appsv1.StatefulSet) { s.Labels["rollout-group"] = "other" }))
	w.replicas("other", 1)
	if n := *w.set("zone-b").Spec.Replicas; n != 2 || len(w.status().Downscales) > 0 {
		t.Errorf("%d replicas while a Pod of zone-a has not gone: %+v", n, w.status())
	}
	pods := &corev1.PodList{}
	if err := w.client.List(t.Context(), pods, client.InNamespace(w.namespace), client.MatchingLabels{"name": "zone-a"}); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		patch := client.RawPatch(types.StrategicMergePatchType, []byte(`{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.test/stays"]}}`))
		if err := w.client.Patch(t.Context(), &pods.Items[i], patch); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	w.replicas("zone-b", 1)
}

// A downscale that is refused frees the lock immediately, is tried again less often each
// time, and the reason is shown.
func TestARefusedDownscaleFreesTheLock(t *testing.T) {
	w := newWorld(t)
	w.create(zone("zone-a", 2), zone("zone-b", 2, annotated(leader, "zone-a", minTime, "1ms")))
	stop := w.manage()
	w.replicas("zone-a", 2)
	w.replicas("zone-b", 2)
	allow := w.refuses("zone-b")
	w.scale(zoneNamed("zone-a"), 1)
	w.eventually(func() error {
		s := w.status()
		if len(s.RefusedDownscales) != 1 || s.RefusedDownscales[0].Attempts < 3 || s.Lock != nil || s.Downscale != nil {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	r := w.status().RefusedDownscales[0]
	if wait := r.RetryAt.Sub(r.At.Time); wait < 4*time.Second {
		t.Errorf("it is tried again after %s", wait)
	}
	p, err := scaling.Look(t.Context(), w.client, scaling.Options{Now: w.clock.Now}, w.namespace, ingester)
	if told := strings.Join(p.Explain(), "\n"); err != nil || !strings.Contains(told, "zone-b is waiting: scale StatefulSet zone-b") || !strings.Contains(told, "next try at") {
		t.Errorf("explained: %q %v", told, err)
	}
	w.eventually(func() error {
		events := &corev1.EventList{}
		if err := w.client.List(t.Context(), events, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == "DownscaleRefused" && e.InvolvedObject.Name == "zone-b" }) {
			return errors.New("no Event DownscaleRefused")
		}
		return nil
	})
	stop()
	allow()
	w.manage()
	w.replicas("zone-b", 1)
	w.eventually(func() error {
		if s := w.status(); len(s.RefusedDownscales) > 0 || s.Lock != nil {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
}

// refuses has a policy refuse to lower the replicas of a StatefulSet.
func (w *world) refuses(name string) (allow func()) {
	w.t.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "refuses." + w.namespace}}
	policy.Spec.MatchConstraints = &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"statefulsets"}},
	}}}}
	policy.Spec.Validations = []admissionv1.Validation{{
		Expression: fmt.Sprintf("object.metadata.namespace != %q || object.metadata.name != %q || object.spec.replicas >= oldObject.spec.replicas", w.namespace, name),
		Message:    "kept for the test",
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy.Name}}
	binding.Spec = admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}
	for _, obj := range []client.Object{policy, binding} {
		if err := w.client.Create(w.t.Context(), obj); err != nil {
			w.t.Fatal(err)
		}
	}
	try := func() error {
		return w.client.Patch(w.t.Context(), w.set(name), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`)), client.DryRunAll)
	}
	w.eventually(func() error {
		if try() == nil {
			return errors.New("the policy is not in force yet")
		}
		return nil
	})
	allow = sync.OnceFunc(func() {
		for _, obj := range []client.Object{binding, policy} {
			_ = w.client.Delete(context.Background(), obj)
		}
	})
	w.t.Cleanup(allow)
	return allow
}

// A Pod that does not run counts as prepared only if its claims were never bound.
func TestAPodThatMayHaveDataIsPrepared(t *testing.T) {
	w, pods := newWorld(t), testenv.ServePods(t)
	claims := func(s *appsv1.StatefulSet) {
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{*claim("data")}
	}
	kept := claim("data-zone-a-1")
	kept.Spec.VolumeName = "its-volume"
	w.create(kept, template(2), zone("zone-a", 2, mirrors, delayed(pods, "1ms"), claims))
	other := zone("zone-b", 2, mirrors, delayed(pods, "1ms"), claims)
	other.Labels["rollout-group"] = "other" // whose claims are never bound
	w.create(&v1alpha1.RolloutGroup{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, other)
	w.manage()
	for _, name := range []string{"zone-a", "zone-b"} {
		w.eventually(func() error {
			if s := w.set(name); s.Status.Replicas != 2 {
				return fmt.Errorf("%s has %d Pods", name, s.Status.Replicas)
			}
			return nil
		})
	}
	w.scale(templateNamed(), 1)
	w.eventually(func() error {
		if n := *w.set("zone-b").Spec.Replicas; n != 1 {
			return fmt.Errorf("zone-b is to have %d replicas", n)
		}
		return nil
	})
	w.eventually(func() error {
		p, err := scaling.Look(t.Context(), w.client, scaling.Options{Now: w.clock.Now}, w.namespace, ingester)
		const want = "zone-a is waiting: Pod zone-a-1 does not run, so it cannot be prepared, and PersistentVolumeClaim data-zone-a-1 may have its data"
		if told := strings.Join(p.Explain(), "\n"); err != nil || told != want {
			return fmt.Errorf("%q %w", told, err)
		}
		return nil
	})
	if n := *w.set("zone-a").Spec.Replicas; n != 2 {
		t.Errorf("zone-a is to have %d replicas", n)
	}
}

// claim is a claim that no controller binds.
func claim(name string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.StorageClassName = new("none")
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	return c
}
