package guard

import "github.com/spillway-dev/spillway/internal/rollout"

// The reasons of answers to evictions in metrics, in the predecessor's words, so that
// its dashboards and alerts go on.
const (
	// reasonAllowed: the eviction was allowed.
	// Mend: nothing, it is news.
	reasonAllowed rollout.Reason = "allowed"
	// reasonNotInScope: no ZoneAwarePodDisruptionBudget is for the Pod; it was let go.
	// Mend: nothing, unless one should be: then compare its selector with the Pod's
	// labels.
	reasonNotInScope rollout.Reason = "pod-not-in-scope"
	// reasonNoLoss: the Pod is down anyway, and was let go.
	// Mend: nothing, it is news.
	reasonNoLoss rollout.Reason = "pod-not-ready"
	// reasonRequest: what was asked is no eviction of a Pod.
	// Mend: see that the webhook is registered for create of pods/eviction alone;
	// spillway install writes it so.
	reasonRequest rollout.Reason = "invalid-request"
	// reasonNoPod: the Pod could not be read.
	// Mend: nothing if it has gone; otherwise the answer says what the API server said.
	reasonNoPod rollout.Reason = "pod-not-found"
	// reasonNoSet: the StatefulSet of the Pod could not be found.
	// Mend: let the budget select Pods of StatefulSets alone.
	reasonNoSet rollout.Reason = "sts-not-found"
	// reasonBudget: the budget cannot be read, or several are for the Pod.
	// Mend: correct the ZoneAwarePodDisruptionBudget that the answer names.
	reasonBudget rollout.Reason = "cfg-not-found"
	// reasonZero: the budget lets no Pod be unavailable.
	// Mend: raise maxUnavailable of the ZoneAwarePodDisruptionBudget.
	reasonZero rollout.Reason = "max-unavailable-0"
	// reasonFewZones: the budget is for fewer than two StatefulSets.
	// Mend: see that the selector of the budget takes in all zones.
	reasonFewZones rollout.Reason = "min-sts-not-found"
	// reasonPartition: the partition of the Pod cannot be read from its name.
	// Mend: correct podNamePartitionRegex of the budget.
	reasonPartition rollout.Reason = "partition-not-identified"
	// reasonDenied: as many Pods as may be are unavailable.
	// Mend: nothing if they become ready, the eviction is tried again; otherwise mend
	// the Pods that the answer names.
	reasonDenied rollout.Reason = "denied"
	// reasonLocked: another zone of the group is being disrupted.
	// Mend: nothing, it passes by itself when the rollout or downscale is over;
	// spillway explain rolloutgroup/NAME says who holds the lock.
	reasonLocked rollout.Reason = "locked"
	// reasonNative: a PodDisruptionBudget of Kubernetes allows no disruption now.
	// Mend: nothing if its Pods become ready; otherwise mend them, or that budget.
	reasonNative rollout.Reason = "native-pdb"
	// reasonOvertaken: too many evictions were decided at a time.
	// Mend: nothing, whoever drains tries again.
	reasonOvertaken rollout.Reason = "overtaken"
	// reasonError: the eviction could not be decided upon, because something failed.
	// Mend: see the answer or the log of the manager for what failed.
	reasonError rollout.Reason = "failed"
)
