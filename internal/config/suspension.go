package config

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// A workload that is created before its config must not run yet. Admission puts
// a scheduling gate into its Pod template; the ring takes it out with the write
// that sets the hash. What matters is the gate itself: the annotation that
// records it is for people, and may be lost.
//
// A Deployment replaces Pods that wait behind the gate by itself, and so does a
// DaemonSet that rolls. A StatefulSet waits for ever for an ordinal of the old
// revision to become ready before it moves on, and OnDelete never moves on; so
// their waiting Pods are deleted, which takes nothing away: none ever ran.

// suspended is true if new Pods of the workload cannot be scheduled.
func (s Suspension) suspended() bool { return s.Gate > 0 || s.Scheduler }

// freed is true if no Pod is waiting any more, and none can come.
func (s Suspension) freed() bool { return s.Seen && s.Known && len(s.Waiting) == 0 }

// settled is true if nothing and nobody is suspended.
func (s Suspension) settled() bool { return !s.suspended() && (!s.Freeing || s.freed()) }

// deletable are the waiting Pods that come back free.
func (s Suspension) deletable() []WaitingPod {
	return slices.DeleteFunc(slices.Clone(s.Waiting), func(p WaitingPod) bool { return p.Held })
}

// suspensionOf reads how a workload is suspended, if it is.
func suspensionOf(obj client.Object) Suspension {
	template, annotations := TemplateOf(obj), obj.GetAnnotations()
	s := Suspension{
		Gate:      slices.IndexFunc(template.Spec.SchedulingGates, isOurGate) + 1,
		Scheduler: template.Spec.SchedulerName == vocabulary.SuspendedScheduler,
		Freeing:   vocabulary.Suspended.Get(annotations) == vocabulary.SuspendedPods,
		Seen:      seenGeneration(obj) >= obj.GetGeneration(),
	}
	if s.Restore = vocabulary.SchedulingDisabled.Get(annotations); s.Restore == "" {
		s.Restore = vocabulary.DefaultScheduler
	}
	return s
}

func isOurGate(g corev1.PodSchedulingGate) bool { return g.Name == vocabulary.SchedulingGate }

// seenGeneration is the generation that the workload's controller has seen.
func seenGeneration(obj client.Object) int64 {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return o.Status.ObservedGeneration
	case *appsv1.StatefulSet:
		return o.Status.ObservedGeneration
	case *appsv1.DaemonSet:
		return o.Status.ObservedGeneration
	default:
		return 0
	}
}

// keepsWaitingPods is true if the workload's controller does not replace Pods
// that wait to be scheduled when the template changes.
func keepsWaitingPods(obj client.Object) bool {
	switch o := obj.(type) {
	case *appsv1.StatefulSet:
		return true
	case *appsv1.DaemonSet:
		return o.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
	default:
		return false
	}
}

// waitingPods are the Pods of a workload that were made before it was released.
// It asks the API server, because it is asked seldom: once or twice for each
// release.
func waitingPods(ctx context.Context, reader client.Reader, obj client.Object) ([]WaitingPod, error) {
	selector, err := metav1.LabelSelectorAsSelector(selectorOf(obj))
	if err != nil {
		return nil, fmt.Errorf("selector of %s: %w", obj.GetName(), err)
	}
	unscheduled := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("spec.nodeName", "")}
	pods := &corev1.PodList{}
	if err := reader.List(ctx, pods, client.InNamespace(obj.GetNamespace()), client.MatchingLabelsSelector{Selector: selector}, unscheduled); err != nil {
		return nil, fmt.Errorf("list waiting Pods of %s: %w", obj.GetName(), err)
	}
	var waiting []WaitingPod
	for i := range pods.Items {
		if p := &pods.Items[i]; metav1.IsControlledBy(p, obj) && waits(p) {
			waiting = append(waiting, WaitingPod{Name: p.Name, Version: p.ResourceVersion, UID: p.UID, Held: heldByPartition(p, obj)})
		}
	}
	return waiting, nil
}

// waits is true for a Pod that nobody will schedule, and nobody has deleted.
func waits(p *corev1.Pod) bool {
	suspended := slices.ContainsFunc(p.Spec.SchedulingGates, isOurGate) || p.Spec.SchedulerName == vocabulary.SuspendedScheduler
	return suspended && p.DeletionTimestamp == nil
}

// heldByPartition is true for a Pod that would come back at the revision that it
// has: deleting it would lead nowhere.
func heldByPartition(p *corev1.Pod, obj client.Object) bool {
	set, ok := obj.(*appsv1.StatefulSet)
	if !ok || set.Spec.UpdateStrategy.RollingUpdate == nil || set.Spec.UpdateStrategy.RollingUpdate.Partition == nil {
		return false
	}
	ordinal, err := strconv.Atoi(p.Name[strings.LastIndexByte(p.Name, '-')+1:])
	return err == nil && ordinal < int(*set.Spec.UpdateStrategy.RollingUpdate.Partition)
}

func selectorOf(obj client.Object) *metav1.LabelSelector {
	switch o := obj.(type) {
	case *appsv1.StatefulSet:
		return o.Spec.Selector
	case *appsv1.DaemonSet:
		return o.Spec.Selector
	case *appsv1.Deployment:
		return o.Spec.Selector
	default:
		return nil
	}
}
