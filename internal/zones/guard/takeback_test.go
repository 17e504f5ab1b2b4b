package guard_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// apart keeps the Pods of a StatefulSet on nodes of their own, of which there are three.
func apart(s *sts) {
	s.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: s.Spec.Template.Labels}, TopologyKey: corev1.LabelHostname,
		}},
	}}
}

// decided changes the status of the group as the rollout does.
func (w *world) decided(change func(*v1alpha1.RolloutGroupStatus)) {
	w.t.Helper()
	g := &v1alpha1.RolloutGroup{}
	w.get(ingester, g)
	change(&g.Status)
	if err := w.client.Status().Update(w.t.Context(), g); err != nil {
		w.t.Fatal(err)
	}
}

// without waits until a scheduler has said that there is no node for these Pods.
func (w *world) without(names ...string) {
	w.t.Helper()
	testenv.Eventually(w.t, func(ctx ctxT) error {
		for _, name := range names {
			p := &corev1.Pod{}
			if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, p); err != nil {
				return err
			}
			if !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Reason == corev1.PodReasonUnschedulable }) {
				return fmt.Errorf("%s is not said to have no node: %+v", name, p.Status)
			}
		}
		return nil
	})
}

// upscaled is a group of which a rollout has the lock, and zone-a is to have two replicas more than
// there are nodes.
func upscaled(t *testing.T) (*world, *testenv.Pods) {
	t.Helper()
	w, pods := newWorld(t), testenv.ServePods(t)
	w.guarded()
	w.group(zone("zone-a", 3, told(pods), apart), zone("zone-b", 1, annotated("grafana.com/min-time-between-zones-downscale", "1h")))
	wantNo(t, w.startRollout())
	wantNo(t, w.patch("zone-a", 5))
	w.without("zone-a-3", "zone-a-4")
	return w, pods
}

// An upscale for which there are no nodes could not be taken back: the zone is not ready, so the
// rollout keeps the lock until there are.
func TestAnUpscaleWithoutNodesIsTakenBack(t *testing.T) {
	for name, paused := range map[string]bool{"rolling": false, "paused": true} {
		t.Run(name, func(t *testing.T) {
			w, pods := upscaled(t)
			if paused {
				wantNo(t, w.client.Patch(t.Context(), &v1alpha1.RolloutGroup{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: ingester}},
					client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"pause":{"reason":"lunch"}}}`))))
			}
			wantError(t, w.scale("zone-a", 2), "the lock is held by rollout/ingester for rollout of zone-b") // zone-a-2 runs
			w.decided(func(s *v1alpha1.RolloutGroupStatus) {                                                 // which forbids what takes Pods down as well
				s.Downscales = []v1alpha1.Downscale{{Zone: "zone-b", UID: w.set("zone-b").UID, From: 2, To: 1, At: metav1.NowMicro()}}
			})
			wantNo(t, w.scale("zone-a", 4))
			if s := w.status(); s.Downscale == nil || !s.Downscale.Unscheduled || s.Downscale.To != 4 || s.Lock == nil || s.Lock.Holder != "rollout/ingester" {
				t.Errorf("written down: %+v, lock %+v", s.Downscale, s.Lock)
			}
			wantNo(t, w.patch("zone-a", 3)) // which settles the one before
			w.ready("zone-a", 3)
			if len(pods.Calls()) > 0 {
				t.Errorf("Pods were called: %v", pods.Calls())
			}
		})
	}
}

// What takes Pods down waits for the lock as before, however often it is asked for.
func TestNothingElseIsTakenBack(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*world)
		want    string
	}{
		"a Pod has a node meanwhile": {func(w *world) {
			p := &corev1.Pod{}
			w.get("zone-a-4", p)
			wantNo(w.t, w.client.SubResource("binding").Create(w.t.Context(), p, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: w.anyNode()}}))
		}, "the lock is held by rollout/ingester"},
		"a Pod is being replaced, so its replica may have served": {func(w *world) {
			w.decided(func(s *v1alpha1.RolloutGroupStatus) {
				s.Moves = []v1alpha1.Move{{Zone: "zone-a", Pod: "zone-a-4", UID: "former", ResourceVersion: "1", Revision: "r", At: metav1.NowMicro()}}
			})
		}, "the lock is held by rollout/ingester"},
		"another downscale is under way": {func(w *world) {
			w.decided(func(s *v1alpha1.RolloutGroupStatus) {
				s.Downscale = &v1alpha1.Downscale{Zone: "zone-b", UID: w.set("zone-b").UID, From: 1, To: 0, At: metav1.NowMicro(), Prepares: true}
			})
		}, "the lock is held by rollout/ingester"},
	} {
		t.Run(name, func(t *testing.T) {
			w, pods := upscaled(t)
			test.prepare(w)
			wantError(t, w.scale("zone-a", 3), test.want)
			wantError(t, w.patch("zone-a", 3), test.want)
			if n := *w.set("zone-a").Spec.Replicas; n != 5 || len(pods.Calls()) > 0 {
				t.Errorf("%d replicas, calls %v", n, pods.Calls())
			}
		})
	}
}

// anyNode is a node of the control plane.
func (w *world) anyNode() string {
	w.t.Helper()
	nodes := &corev1.NodeList{}
	if err := w.client.List(w.t.Context(), nodes); err != nil || len(nodes.Items) == 0 {
		w.t.Fatal(errors.Join(err, errors.New("no nodes")))
	}
	return nodes.Items[0].Name
}

// A Pod that no node ever had may still have data of a Pod before it.
func TestDataIsNotTakenBack(t *testing.T) {
	w, pods := newWorld(t), testenv.ServePods(t)
	w.guarded()
	claims := func(s *sts) { s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{*claim("data")} }
	kept := claim("data-zone-a-1")
	kept.Spec.VolumeName = "its-volume"
	w.group(zone("zone-b", 1))
	wantNo(t, w.startRollout())
	w.create(kept, zone("zone-a", 2, told(pods), claims), zone("zone-c", 2, told(pods), claims))
	w.without("zone-a-1", "zone-c-1")
	wantError(t, w.scale("zone-a", 1), "PersistentVolumeClaim data-zone-a-1 may have its data")
	wantNo(t, w.scale("zone-c", 1))
}
