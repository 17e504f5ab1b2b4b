package sim

import (
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/workload"
)

// pass lets time pass.
func (w *world) pass(by time.Duration) {
	w.now = w.now.Add(by)
	for _, o := range w.all {
		if at, ok := w.absent[o]; ok && !w.now.Before(at) {
			w.put(o, w.before[o][len(w.before[o])-1])
			w.notef("%s is back", o.Name)
		}
	}
	for _, u := range w.units {
		for _, p := range u.pods {
			if w.storm && w.flaps && p.ready && w.chance(0.01) {
				p.blip = w.now.Add(w.seconds(5, 60))
				w.count("blips")
			}
			p.live(w, u)
		}
		if w.chance(w.keen) || !w.storm {
			w.sync(u)
		}
		if !w.storm && u.kind == workload.StatefulSet { // a user takes away what the set waits for in vain
			u.pods = slices.DeleteFunc(u.pods, func(p *pod) bool { return p.fate != good })
		}
		w.oracle.look(u)
	}
}

// sync is one look of the controller at a workload.
func (w *world) sync(u *unit) {
	obj := u.object(w)
	if obj == nil {
		return
	}
	t := workload.TemplateOf(obj)
	u.refused = false
	u.resize(w, u.scales(obj, t))
	if !workload.IsHeldBack(obj) {
		w.replacePods(u, t)
	}
	w.writeStatus(u, obj, fingerprint(t))
}

// scales is the template of Pods that a workload gets when it is scaled: one that is paused has
// no ReplicaSet of the present one.
func (u *unit) scales(obj client.Object, t *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	if d, ok := obj.(*appsv1.Deployment); !ok || !d.Spec.Paused || len(u.pods) == 0 {
		return t
	}
	old := t.DeepCopy()
	old.Annotations = maps.Clone(u.pods[0].annotations)
	return old
}

// resize makes Pods, and takes away those that are too many.
func (u *unit) resize(w *world, t *corev1.PodTemplateSpec) {
	surge := 0
	if u.kind == workload.Deployment {
		surge = 1
	}
	for len(u.pods) > u.replicas+surge {
		u.pods = u.pods[:len(u.pods)-1]
		w.podsAt++
	}
	for len(u.pods) < u.replicas && !w.lacks(u) && !u.refused {
		if w.start(u, t); !u.refused {
			u.progressed = w.now
		}
	}
}

// lacks is true while some object does not exist: no Pod starts.
func (w *world) lacks(u *unit) bool {
	return slices.ContainsFunc(u.uses, func(o content.Object) bool { _, gone := w.absent[o]; return gone })
}

// replacePods replaces one Pod at a time: those of a Deployment once there is another that is ready.
func (w *world) replacePods(u *unit, t *corev1.PodTemplateSpec) {
	is := fingerprint(t)
	old := slices.IndexFunc(u.pods, func(p *pod) bool { return p.template != is })
	if w.lacks(u) {
		return
	}
	if old < 0 {
		u.pods = u.pods[:min(len(u.pods), u.replicas)]
		return
	}
	ready := 0
	for _, p := range u.pods {
		if p.ready {
			ready++
		}
	}
	if u.kind == workload.Deployment {
		w.replaceSurging(u, t, old, ready)
		return
	}
	if u.kind == workload.DaemonSet {
		if down := slices.IndexFunc(u.pods, func(p *pod) bool { return p.template != is && !p.ready }); down >= 0 {
			old = down
		} else if ready < u.replicas {
			return
		}
	} else if ready < u.replicas { // it waits for each of its Pods
		return
	}
	u.pods = slices.Delete(u.pods, old, old+1)
	w.podsAt++
	w.start(u, t)
}

func (w *world) replaceSurging(u *unit, t *corev1.PodTemplateSpec, old, ready int) {
	is := fingerprint(t)
	fresh := func(p *pod) bool { return p.template == is }
	if down := slices.IndexFunc(u.pods, func(p *pod) bool { return p.template != is && !p.ready }); down >= 0 && len(u.pods) > u.replicas {
		u.pods, u.progressed = slices.Delete(u.pods, down, down+1), w.now
		w.podsAt++
		return
	}
	switch {
	case len(u.pods) <= u.replicas:
		if w.start(u, t); !u.refused {
			u.progressed = w.now
		}
	case ready > u.replicas || slices.ContainsFunc(u.pods, func(p *pod) bool { return fresh(p) && p.ready }) && ready >= u.replicas:
		u.pods, u.progressed = slices.Delete(u.pods, old, old+1), w.now
		w.podsAt++
	}
}

// writeStatus writes what the controller has seen.
func (w *world) writeStatus(u *unit, obj client.Object, template string) {
	all, updated, ready := int32(len(u.pods)), int32(0), int32(0)
	for _, p := range u.pods {
		if p.template == template {
			updated++
		}
		if p.ready {
			ready++
		}
	}
	n := int32(u.replicas)
	changed, _ := obj.DeepCopyObject().(client.Object)
	switch o := changed.(type) {
	case *appsv1.Deployment:
		w.deploymentStatus(u, o, all, updated, ready)
	case *appsv1.StatefulSet:
		s := &o.Status
		s.ObservedGeneration, s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.UpdateRevision = o.Generation, all, updated, ready, ready, template
		if updated == n && ready == n || s.CurrentRevision == "" {
			s.CurrentRevision = template
		}
		s.CurrentReplicas = all - updated
		if s.CurrentRevision == s.UpdateRevision {
			s.CurrentReplicas = updated
		}
	case *appsv1.DaemonSet:
		o.Status = appsv1.DaemonSetStatus{ObservedGeneration: o.Generation, DesiredNumberScheduled: n, CurrentNumberScheduled: all, UpdatedNumberScheduled: updated, NumberReady: ready, NumberAvailable: ready, NumberUnavailable: n - ready}
	}
	if !equality.Semantic.DeepEqual(statusOf(obj), statusOf(changed)) {
		w.must(w.store.Status().Update(quiet, changed))
	}
}

func statusOf(obj client.Object) any {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return o.Status
	case *appsv1.StatefulSet:
		return o.Status
	case *appsv1.DaemonSet:
		return o.Status
	default:
		return nil
	}
}

func (w *world) deploymentStatus(u *unit, o *appsv1.Deployment, all, updated, ready int32) {
	n, before := *o.Spec.Replicas, o.Status
	if before.AvailableReplicas < ready || before.ObservedGeneration != o.Generation || o.Spec.Paused { // its time stands still
		u.progressed = w.now
	}
	o.Status = appsv1.DeploymentStatus{ObservedGeneration: o.Generation, Replicas: all, UpdatedReplicas: updated, ReadyReplicas: ready, AvailableReplicas: ready, UnavailableReplicas: max(0, n-ready)}
	done := updated == n && ready == n && all == n
	was := slices.ContainsFunc(before.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Reason == "NewReplicaSetAvailable" })
	progress := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "ReplicaSetUpdated", LastUpdateTime: metav1.NewTime(u.progressed)}
	switch {
	case done || was && all == updated:
		progress.Reason = "NewReplicaSetAvailable"
	case w.now.Sub(u.progressed) > 120*time.Second:
		progress.Status, progress.Reason = corev1.ConditionFalse, "ProgressDeadlineExceeded"
	}
	available := appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse}
	if ready >= n {
		available.Status = corev1.ConditionTrue
	}
	o.Status.Conditions = []appsv1.DeploymentCondition{available, progress}
	if u.refused {
		o.Status.Conditions = append(o.Status.Conditions, appsv1.DeploymentCondition{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "pods is forbidden: exceeded quota: pods",
		})
	}
}
