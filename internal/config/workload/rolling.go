package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// ProgressDeadline is how long a rolling workload counts against the budget; the
// default progressDeadlineSeconds of a Deployment.
const ProgressDeadline = 10 * time.Minute

// reportsWithin is how long after its deadline Kubernetes may take to report a Deployment, and
// how far its clock may be from that of the manager.
const reportsWithin = time.Minute

// StallsAt is when a Deployment that makes no progress has failed, whether or not Kubernetes
// reports it: its controller does so by a timer of its own, and has been seen not to. Zero of
// one that is complete, and of other workloads.
func StallsAt(obj client.Object) time.Time {
	d, ok := obj.(*appsv1.Deployment)
	if !ok || d.Spec.Paused || d.Spec.ProgressDeadlineSeconds == nil || observedGeneration(d) < d.Generation || !isUnfinished(d) {
		return time.Time{}
	}
	within := time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionTrue && !c.LastUpdateTime.IsZero() {
			return c.LastUpdateTime.Add(within + reportsWithin)
		}
	}
	return time.Time{}
}

// IsAsRolled is true if the workload has the Pod template that the ring rolled
// last: its status is then the result of that roll, and not of a later change by
// another client.
func IsAsRolled(workload client.Object) bool {
	roll := recordsOf(workload).Roll
	return roll.Template != "" && roll.Template == TemplateDigest(workload)
}

// IsRolling is true until the workload's controller has completed replacing Pods.
// It is true where another client decides which Pods are replaced.
func IsRolling(workload client.Object) bool { return IsHeldBack(workload) || isUnfinished(workload) }

// IsReplacing is true while the workload's controller replaces Pods automatically,
// and has not completed.
func IsReplacing(obj client.Object) bool { return !IsHeldBack(obj) && isUnfinished(obj) }

// IsUnfinished is true while Pods are replaced, or wait for another client to replace them.
func IsUnfinished(obj client.Object) bool { return isUnfinished(obj) }

// HasNoPods is true if a workload is to have no Pods.
func HasNoPods(obj client.Object) bool {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return o.Spec.Replicas != nil && *o.Spec.Replicas == 0
	case *appsv1.StatefulSet:
		return replicasOf(o) == 0
	case *appsv1.DaemonSet:
		return observedGeneration(o) >= o.Generation && o.Status.DesiredNumberScheduled == 0
	default:
		return false
	}
}

// IsReady is true if all Pods of a workload are ready, as far as its status says. It is so
// also where another client decides which Pods are replaced.
func IsReady(obj client.Object) bool {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return o.Spec.Replicas == nil && o.Status.AvailableReplicas > 0 || o.Spec.Replicas != nil && o.Status.AvailableReplicas >= *o.Spec.Replicas
	case *appsv1.StatefulSet:
		return o.Status.ReadyReplicas >= replicasOf(o)
	case *appsv1.DaemonSet:
		return o.Status.NumberReady >= o.Status.DesiredNumberScheduled
	default:
		return false
	}
}

// Available is how many Pods of a workload are available.
func Available(obj client.Object) int32 {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return o.Status.AvailableReplicas
	case *appsv1.StatefulSet:
		return o.Status.AvailableReplicas
	case *appsv1.DaemonSet:
		return o.Status.NumberAvailable
	default:
		return 0
	}
}

// RefusedPods is why the controller of a Deployment cannot create Pods, empty if it can, or if
// that is not known.
func RefusedPods(obj client.Object) string {
	d, ok := obj.(*appsv1.Deployment)
	if !ok {
		return ""
	}
	for _, c := range d.Status.Conditions {
		if c.Type != appsv1.DeploymentReplicaFailure || c.Status != corev1.ConditionTrue || c.Reason != "FailedCreate" {
			continue
		}
		const quota = "exceeded quota: "
		if i := strings.Index(c.Message, quota); i >= 0 {
			return c.Message[i:]
		}
		return "its Pods cannot be created"
	}
	return ""
}

// SettlesWithin is for how long after a roll a workload that completed it may still prove not
// to work with its config.
func SettlesWithin(obj client.Object) time.Duration {
	return max(TimeToRoll(obj), ProgressDeadline) + ProgressDeadline
}

// Kept are the Pods at an earlier revision that the workload's controller does not
// replace, because another client decides which Pods are replaced, and of how many; none
// while the controller has not observed the workload. Those of a group are replaced by
// the zones ring.
func Kept(obj client.Object) (kept, of int32) {
	if vocabulary.GroupOf(obj.GetLabels(), obj.GetAnnotations()) != "" || !IsHeldBack(obj) || observedGeneration(obj) < obj.GetGeneration() {
		return 0, 0
	}
	switch o := obj.(type) {
	case *appsv1.Deployment:
		kept, of = o.Status.Replicas-o.Status.UpdatedReplicas, o.Status.Replicas
	case *appsv1.StatefulSet:
		kept, of = o.Status.Replicas-o.Status.UpdatedReplicas, o.Status.Replicas
	case *appsv1.DaemonSet:
		kept, of = o.Status.CurrentNumberScheduled-o.Status.UpdatedNumberScheduled, o.Status.CurrentNumberScheduled
	}
	return max(kept, 0), of
}

// KeptBy says what keeps Pods of a workload at an earlier revision, and how a user ends it.
func KeptBy(obj client.Object) string {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		if at := o.Annotations[vocabulary.ReloaderPausedAt]; at != "" {
			return "Reloader has paused its rollout (spec.paused); resume it, unless Reloader still runs"
		}
		return "its rollout is paused (spec.paused); resume it"
	case *appsv1.StatefulSet:
		if r := o.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil && *r.Partition > 0 {
			return fmt.Sprintf("its partition is %d; lower it", *r.Partition)
		}
	}
	return "its update strategy is OnDelete; delete them"
}

// isUnfinished is true while the workload's controller has not completed.
func isUnfinished(obj client.Object) bool {
	if observedGeneration(obj) < obj.GetGeneration() {
		return true
	}
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return o.Status.UpdatedReplicas < o.Status.Replicas || !slices.ContainsFunc(o.Status.Conditions, isComplete)
	case *appsv1.StatefulSet:
		return o.Status.CurrentRevision != o.Status.UpdateRevision
	case *appsv1.DaemonSet:
		return o.Status.UpdatedNumberScheduled < o.Status.DesiredNumberScheduled || o.Status.NumberAvailable <= 0
	default:
		return false
	}
}

// isComplete is the condition that a Deployment keeps until the next roll, or longer: its
// controller may fail to write that the next one has begun.
func isComplete(c appsv1.DeploymentCondition) bool {
	return c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionTrue && c.Reason == "NewReplicaSetAvailable"
}

// IsHeldBack is true if another client decides which Pods of the workload are
// replaced, and for other objects.
func IsHeldBack(obj client.Object) bool {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return o.Spec.Paused
	case *appsv1.StatefulSet:
		rolling := o.Spec.UpdateStrategy.RollingUpdate
		return o.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType ||
			rolling != nil && rolling.Partition != nil && *rolling.Partition > 0
	case *appsv1.DaemonSet:
		return o.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
	default:
		return true
	}
}

// TimeToRoll is how long a workload may roll before it counts as failed, enough to
// replace its Pods one after the other. Negative is no limit: for a Deployment,
// Kubernetes reports the failure.
func TimeToRoll(obj client.Object) time.Duration {
	pods := int32(1)
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return -1
	case *appsv1.StatefulSet:
		if o.Spec.Replicas != nil {
			pods = *o.Spec.Replicas
		}
	case *appsv1.DaemonSet:
		pods = o.Status.DesiredNumberScheduled
	}
	return ProgressDeadline * time.Duration(max(pods, 1))
}

// TemplateDigest is a digest of the Pod template of a workload without what the
// ring puts there.
func TemplateDigest(obj client.Object) string { return DigestOf(Bare(obj)) }

// DigestOf is a digest of a Pod template.
func DigestOf(t *corev1.PodTemplateSpec) string {
	raw, err := json.Marshal(t)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}

// Bare is the Pod template without what admission and the ring put there.
func Bare(obj client.Object) *corev1.PodTemplateSpec { return BareTemplate(TemplateOf(obj)) }

// BareTemplate is a Pod template without what admission and the ring put there.
func BareTemplate(of *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	t := of.DeepCopy()
	for _, name := range append(vocabulary.ConfigHash.Names(), vocabulary.Pins.Names()...) {
		delete(t.Annotations, name)
	}
	if i := slices.IndexFunc(t.Spec.SchedulingGates, isOurGate); i >= 0 {
		t.Spec.SchedulingGates = append(t.Spec.SchedulingGates[:i:i], t.Spec.SchedulingGates[i+1:]...)
	}
	return t
}
