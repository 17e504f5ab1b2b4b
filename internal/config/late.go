package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/rollout"
)

// A roll takes a place in the budget for ten minutes at most. Whether it has come through
// by then is another matter: a workload whose Pods cannot start with their new config is
// not where it should be, for as long as they cannot.

// isLate is true of a workload that has had its time, while its Pods still follow the
// hash that the ring wrote. It is not true of what was well since, nor of a template that
// somebody else has changed since, nor of Pods that move when others say so.
func (w *Workload) isLate(now time.Time) bool {
	roll := &w.Records.Roll
	return !roll.At.IsZero() && !w.rolling(now) && w.Health.Health != rollout.Healthy &&
		w.Settings.Tracked && w.settled() && w.Zone.Group == "" &&
		isRolled(w.object) && roll.Template == templateDigest(w.object)
}

// IsAsRolled is true of a workload that has the Pod template that the ring rolled last: what
// its controller says is about that roll then, and not about a later change by somebody.
func IsAsRolled(workload client.Object) bool {
	roll := recordsOf(workload).Roll
	return roll.Template != "" && roll.Template == templateDigest(workload)
}

// IsRolling is true until the workload's controller has come through with replacing Pods,
// whatever becomes of them later. Where others say which Pods move it is true.
func IsRolling(workload client.Object) bool { return isHeldBack(workload) || isUnfinished(workload) }

// isRolled is true while the workload's controller replaces Pods by itself, and has not
// come through.
func isRolled(obj client.Object) bool { return !isHeldBack(obj) && isUnfinished(obj) }

// isUnfinished is true while the workload's controller has not come through.
func isUnfinished(obj client.Object) bool {
	if seenGeneration(obj) < obj.GetGeneration() {
		return true
	}
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return !slices.ContainsFunc(o.Status.Conditions, hasComeThrough)
	case *appsv1.StatefulSet:
		return o.Status.CurrentRevision != o.Status.UpdateRevision
	case *appsv1.DaemonSet:
		return o.Status.UpdatedNumberScheduled < o.Status.DesiredNumberScheduled || o.Status.NumberAvailable <= 0
	default:
		return false
	}
}

// hasComeThrough is the word of a Deployment's controller, which stays until the next roll.
func hasComeThrough(c appsv1.DeploymentCondition) bool {
	return c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionTrue && c.Reason == "NewReplicaSetAvailable"
}

// isHeldBack is true of a workload of which somebody else says which Pods move, and of
// what is none.
func isHeldBack(obj client.Object) bool {
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

// timeToRoll is how long a workload may take before it counts as failed, so long that its
// Pods may go one after the other. Negative is for ever: of a Deployment Kubernetes says
// itself that it has failed.
func timeToRoll(obj client.Object) time.Duration {
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
	return progressDeadline * time.Duration(max(pods, 1))
}

// templateDigest stands for the Pod template of a workload without what the ring puts there.
func templateDigest(obj client.Object) string {
	raw, err := json.Marshal(bare(obj))
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}
