package guard

import "github.com/spillway-dev/spillway/rollout"

// The reasons of answers to evictions in metrics, in rollout-operator's words, so that
// its dashboards and alerts go on.
const (
	// reasonAllowed: the eviction was allowed.
	// Action: nothing, for information only.
	reasonAllowed rollout.Reason = "allowed"
	// reasonNotInScope: no ZoneAwarePodDisruptionBudget selects the Pod; the eviction was
	// allowed.
	// Action: nothing, unless one should: then compare its selector with the labels of the
	// Pod.
	reasonNotInScope rollout.Reason = "pod-not-in-scope"
	// reasonNoLoss: the Pod was unavailable already; the eviction was allowed.
	// Action: nothing, for information only.
	reasonNoLoss rollout.Reason = "pod-not-ready"
	// reasonRequest: the request is not an eviction of a Pod.
	// Action: register the webhook only for create of pods/eviction, as spillway install
	// does.
	reasonRequest rollout.Reason = "invalid-request"
	// reasonNoPod: the Pod could not be read.
	// Action: nothing if it was deleted; otherwise fix the error of the API server that
	// the answer names.
	reasonNoPod rollout.Reason = "pod-not-found"
	// reasonNoSet: the StatefulSet of the Pod could not be found.
	// Action: let the budget select only Pods of StatefulSets.
	reasonNoSet rollout.Reason = "sts-not-found"
	// reasonBudget: the budget cannot be read, or several select the Pod.
	// Action: correct the ZoneAwarePodDisruptionBudget that the answer names.
	reasonBudget rollout.Reason = "cfg-not-found"
	// reasonZero: the budget allows no Pod to be unavailable.
	// Action: raise maxUnavailable of the ZoneAwarePodDisruptionBudget.
	reasonZero rollout.Reason = "max-unavailable-0"
	// reasonFewZones: the budget selects fewer than two StatefulSets.
	// Action: let the selector of the budget match the StatefulSets of all zones.
	reasonFewZones rollout.Reason = "min-sts-not-found"
	// reasonPartition: the partition of the Pod cannot be read from its name.
	// Action: correct podNamePartitionRegex of the budget.
	reasonPartition rollout.Reason = "partition-not-identified"
	// reasonDenied: as many Pods as the budget allows are unavailable.
	// Action: nothing if they become ready, and the client retries; otherwise fix the Pods
	// that the answer names.
	reasonDenied rollout.Reason = "denied"
	// reasonLocked: another zone of the group is being disrupted.
	// Action: nothing, the wait ends automatically when the rollout or downscale is over;
	// spillway explain rolloutgroup/NAME shows who holds the lock.
	reasonLocked rollout.Reason = "locked"
	// reasonNative: a PodDisruptionBudget of Kubernetes allows no disruption now.
	// Action: nothing if its Pods become ready; otherwise fix them, or that budget.
	reasonNative rollout.Reason = "native-pdb"
	// reasonConflict: too many evictions were decided at the same time.
	// Action: nothing, the client retries the eviction.
	reasonConflict rollout.Reason = "conflict"
	// reasonError: the eviction could not be decided because of an error.
	// Action: fix the error that the answer or the log of the manager names.
	reasonError rollout.Reason = "failed"
)
