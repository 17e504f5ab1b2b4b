package models

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/pods"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// podView shows the Pods of a namespace: those that are kept in the API, and one for each
// replica of a Deployment or DaemonSet.
type podView struct{ *Models }

// Pods reads the Pods of a namespace as the config ring does, which finds out from them what has
// failed and since when it is ready.
func (m *Models) Pods() pods.Reader { return podView{m} }

// In implements [pods.Reader].
func (v podView) In(ctx context.Context, namespace string) pods.Pods {
	all := pods.Listing{Client: v.world.Store}.In(ctx, namespace)
	for _, obj := range v.world.Store.Objects(&appsv1.Deployment{}, namespace) {
		if d, ok := obj.(*appsv1.Deployment); ok {
			all.Items = append(all.Items, v.of(d, &d.Spec.Template, func(r *replica) metav1.OwnerReference {
				return metav1.OwnerReference{Kind: "ReplicaSet", Name: d.Name + "-" + r.template, Controller: new(true)}
			})...)
		}
	}
	for _, obj := range v.world.Store.Objects(&appsv1.DaemonSet{}, namespace) {
		if d, ok := obj.(*appsv1.DaemonSet); ok {
			all.Items = append(all.Items, v.of(d, &d.Spec.Template, func(*replica) metav1.OwnerReference {
				return metav1.OwnerReference{Kind: workloads.DaemonSet, Name: d.Name, UID: d.UID, Controller: new(true)}
			})...)
		}
	}
	return all
}

// Keep implements [pods.Reader].
func (podView) Keep(map[string]bool) {}

// of are the Pods of a workload. Those of an earlier template do not say which config they have.
func (v podView) of(workload client.Object, template *corev1.PodTemplateSpec, owner func(*replica) metav1.OwnerReference) []*corev1.Pod {
	set, current := v.run.sets[workload.GetUID()], fingerprint(template)
	if set == nil {
		return nil
	}
	all := make([]*corev1.Pod, len(set.all))
	for i := range set.all {
		r := &set.all[i]
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: workload.GetNamespace(), Labels: template.Labels, OwnerReferences: []metav1.OwnerReference{owner(r)},
		}}
		if r.template == current {
			pod.Annotations = template.Annotations
		}
		pod.Spec.NodeName = "node"
		ready := r.isReady(v.world.Now)
		setReady(pod, v.world.Now, ready, "")
		if ready {
			readyAt(pod, r)
		}
		if r.fault == world.Crashing {
			setCrashing(pod, v.world.Now)
		}
		all[i] = pod
	}
	return all
}

// readyAt says since when a Pod is ready.
func readyAt(pod *corev1.Pod, r *replica) {
	for i := range pod.Status.Conditions {
		pod.Status.Conditions[i].LastTransitionTime = metav1.NewTime(r.readyAt)
	}
}
