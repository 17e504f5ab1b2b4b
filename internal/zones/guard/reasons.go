package guard

import "github.com/spillway-dev/spillway/rollout"

// The reasons of answers to evictions in metrics, in rollout-operator's words, so that
// its dashboards and alerts go on.
const (
	// reasonAllowed: the eviction was allowed.
	// Action: nothing, it is news.
	reasonAllowed rollout.Reason = "allowed"
	// reasonNotInScope: no ZoneAwarePodDisruptionBudget is for the Pod; it was let go.
	// Action: nothing, unless one should be: then compare its selector with the Pod's
	// labels.
	reasonNotInScope rollout.Reason = "pod-not-in-scope"
	// reasonNoLoss: the Pod is down anyway, and was let go.
	// Action: nothing, it is news.
	reasonNoLoss rollout.Reason = "pod-not-ready"
	// reasonRequest: what was asked is no eviction of a Pod.
	// Action: see that the webhook is registered for create of pods/eviction alone;
	// spillway install writes it so.
	reasonRequest rollout.Reason = "invalid-request"
	// reasonNoPod: the Pod could not be read.
	// Action: nothing if it has gone; otherwise the answer says what the API server said.
	reasonNoPod rollout.Reason = "pod-not-found"
	// reasonNoSet: the StatefulSet of the Pod could not be found.
	// Action: let the budget select Pods of StatefulSets alone.
	reasonNoSet rollout.Reason = "sts-not-found"
	// reasonBudget: the budget cannot be read, or several are for the Pod.
	// Action: correct the ZoneAwarePodDisruptionBudget that the answer names.
	reasonBudget rollout.Reason = "cfg-not-found"
	// reasonZero: the budget lets no Pod be unavailable.
	// Action: raise maxUnavailable of the ZoneAwarePodDisruptionBudget.
	reasonZero rollout.Reason = "max-unavailable-0"
	// reasonFewZones: the budget is for fewer than two StatefulSets.
	// Action: see that the selector of the budget takes in all zones.
	reasonFewZones rollout.Reason = "min-sts-not-found"
	// reasonPartition: the partition of the Pod cannot be read from its name.
	// Action: correct podNamePartitionRegex of the budget.
	reasonPartition rollout.Reason = "partition-not-identified"
	// reasonDenied: as many Pods as may be are unavailable.
	// Action: nothing if they become ready, the eviction is tried again; otherwise fix
	// the Pods that the answer names.
	reasonDenied rollout.Reason = "denied"
	// reasonLocked: another zone of the group is being disrupted.
	// Action: nothing, it passes automatically when the rollout or downscale is over;
	// spillway explain rolloutgroup/NAME says who holds the lock.
	reasonLocked rollout.Reason = "locked"
	// reasonNative: a PodDisruptionBudget of Kubernetes allows no disruption now.
	// Action: nothing if its Pods become ready; otherwise fix them, or that budget.
	reasonNative rollout.Reason = "native-pdb"
	// reasonConflict: too many evictions were decided at a time.
	// Action: nothing, the client that drains tries again.
	reasonConflict rollout.Reason = "conflict"
	// reasonError: the eviction could not be decided upon, because something failed.
	// Action: see the answer or the log of the manager for what failed.
	reasonError rollout.Reason = "failed"
)
