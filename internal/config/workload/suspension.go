package workload

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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// A workload that is created before its config must not run yet. Admission puts
// a scheduling gate into its Pod template; the ring removes it with the write
// that sets the hash. The gate itself is what counts: the annotation that records
// it is information, and may be lost.
//
// A Deployment automatically replaces Pods that wait behind the gate, and so does
// a DaemonSet that rolls. A StatefulSet waits without end for an ordinal of the old
// revision to become ready, and with OnDelete no Pod is replaced. Their suspended
// Pods are deleted, which disrupts nothing: they never ran.

// SuspendBy is how a workload whose config is missing is suspended.
type SuspendBy string

// The ways to suspend a workload.
const (
	// SuspendByGate adds a scheduling gate to the Pod template.
	SuspendByGate SuspendBy = "scheduling-gate"
	// SuspendByScheduler names a scheduler that does not exist, as wave does.
	SuspendByScheduler SuspendBy = "scheduler"
	// SuspendNot does not suspend it: the kubelet waits for what is missing.
	SuspendNot SuspendBy = "none"
)

// Suspension is how a workload's Pods are prevented from being scheduled until
// their config exists.
type Suspension struct {
	// Gate is the place of our scheduling gate in the Pod template, counted from
	// 1; zero if the template has none.
	Gate int
	// Scheduler is true if the template names the scheduler that does not exist,
	// as wave does, and Restore is the one to restore.
	Scheduler bool
	Restore   string
	// Freeing is true if the template was released, and Pods that were created
	// before may still be suspended.
	Freeing bool
	// Seen is true if the workload's controller has observed the present template.
	Seen bool
	// Waiting are the Pods that are still suspended, if they are Known. They are
	// listed only while Freeing.
	Waiting []WaitingPod
	Known   bool
}

// WaitingPod is a Pod that was never scheduled, and never will be.
type WaitingPod struct {
	Name, Version string
	UID           types.UID
	// Held is true if it would be recreated unchanged, because the partition of its
	// StatefulSet keeps it at its revision.
	Held bool
}

// IsSettled is true if neither the workload nor any of its Pods is suspended.
func (s Suspension) IsSettled() bool { return !s.IsSuspended() && (!s.Freeing || s.isFreed()) }

// IsSuspended is true if new Pods of the workload cannot be scheduled.
func (s Suspension) IsSuspended() bool { return s.Gate > 0 || s.Scheduler }

// isFreed is true if no Pod is suspended any more, and no new one can be.
func (s Suspension) isFreed() bool { return s.Seen && s.Known && len(s.Waiting) == 0 }

// Deletable are the suspended Pods that would be recreated without the suspension.
func (s Suspension) Deletable() []WaitingPod {
	return slices.DeleteFunc(slices.Clone(s.Waiting), func(p WaitingPod) bool { return p.Held })
}

// SuspensionOf reads how a workload is suspended, if it is.
func SuspensionOf(obj client.Object) Suspension {
	template, annotations := TemplateOf(obj), obj.GetAnnotations()
	s := Suspension{
		Gate:      slices.IndexFunc(template.Spec.SchedulingGates, isOurGate) + 1,
		Scheduler: template.Spec.SchedulerName == vocabulary.SuspendedScheduler,
		Freeing:   vocabulary.Suspended.Get(annotations) == vocabulary.SuspendedPods,
		Seen:      observedGeneration(obj) >= obj.GetGeneration(),
	}
	if s.Restore = vocabulary.SchedulingDisabled.Get(annotations); s.Restore == "" {
		s.Restore = vocabulary.DefaultScheduler
	}
	return s
}

// observedGeneration is the generation that the workload's controller has observed.
func observedGeneration(obj client.Object) int64 {
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
// that are not scheduled when the template changes.
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

// WaitingPods lists the suspended Pods of a workload that were created before it
// was released. It reads from the API server, because it is called once or twice
// for each release.
func WaitingPods(ctx context.Context, reader client.Reader, obj client.Object) ([]WaitingPod, error) {
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
		if p := &pods.Items[i]; metav1.IsControlledBy(p, obj) && isSuspendedPod(p) {
			waiting = append(waiting, WaitingPod{Name: p.Name, Version: p.ResourceVersion, UID: p.UID, Held: isHeldByPartition(p, obj)})
		}
	}
	return waiting, nil
}

// isSuspendedPod is true for a Pod that no scheduler will schedule, and that is not
// being deleted.
func isSuspendedPod(p *corev1.Pod) bool {
	suspended := slices.ContainsFunc(p.Spec.SchedulingGates, isOurGate) || p.Spec.SchedulerName == vocabulary.SuspendedScheduler
	return suspended && p.DeletionTimestamp == nil
}

// IsSuspendedTemplate is true if Pods of a template would not be scheduled.
func IsSuspendedTemplate(t *corev1.PodTemplateSpec) bool {
	return slices.ContainsFunc(t.Spec.SchedulingGates, isOurGate) || t.Spec.SchedulerName == vocabulary.SuspendedScheduler
}

func isOurGate(g corev1.PodSchedulingGate) bool { return g.Name == vocabulary.SchedulingGate }

// isHeldByPartition is true for a Pod that would be recreated at the revision that
// it has: deleting it would change nothing.
func isHeldByPartition(p *corev1.Pod, obj client.Object) bool {
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
