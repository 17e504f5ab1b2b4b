package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/record"
)

// ModuleStatus is the progress of a module. Of the clusters it names only those that are not complete, as far
// as the record of the rollout is bounded.
type ModuleStatus struct {
	// ObservedGeneration is the generation of the module that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Phase is Complete, Progressing, Waiting, Paused, Failed, RollingBack, or
	// RolledBack once that is done.
	// +optional
	Phase string `json:"phase,omitempty"`
	// Stage is the stage that is updating, its number, and of how many: "canary
	// 1/3".
	// +optional
	Stage string `json:"stage,omitempty"`
	// Clusters is how many run the target revision and are ready, of how many: "7/9".
	// +optional
	Clusters string `json:"clusters,omitempty"`
	// WaitingFor is the main reason why it is not complete, as a sentence.
	// +optional
	WaitingFor string `json:"waitingFor,omitempty"`
	// Since is when that wait began.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// CurrentRevision is the last ModuleRevision that reached all clusters. New
	// clusters get it immediately.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`
	// TargetRevision is the ModuleRevision to roll out.
	// +optional
	TargetRevision string `json:"targetRevision,omitempty"`
	// RolledBack is a revision that failed and was rolled back. It is not tried
	// again until the template or the spec's targetRevision changes, or a user retries it.
	// +optional
	RolledBack string `json:"rolledBack,omitempty"`
	// GivenUp says why, and since when. A copy of it lies with each cluster.
	// +optional
	GivenUp *GivenUp `json:"givenUp,omitempty"`
	// Retried is the last retry of the target revision, until it has reached all clusters or is
	// given up again.
	// +optional
	Retried *Retried `json:"retried,omitempty"`
	// ObservedSync is the sync of the spec when it was last observed; only its
	// source if the whole is larger than 8 KiB.
	// +optional
	ObservedSync *Sync `json:"observedSync,omitempty"`
	// Summary counts all clusters.
	// +optional
	Summary *Summary `json:"summary,omitempty"`
	// Stages counts those of each stage, in order.
	// +optional
	// +listType=map
	// +listMapKey=name
	Stages []StageStatus `json:"stages,omitempty"`
	// Rollout is the record of the rollout: how far it has come, and why it has not come further. Absent if no
	// manager has recorded it yet.
	// +optional
	Rollout *record.Rollout `json:"rollout,omitempty"`
	// FailingClusters are examples of those that have failed, at most 20.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	FailingClusters []FailingCluster `json:"failingClusters,omitempty"`
	// FailingTruncated is true if there are more.
	// +optional
	FailingTruncated bool `json:"failingTruncated,omitempty"`
	// Removal are the clusters that lose the module, absent if none does.
	// +optional
	Removal *RemovalStatus `json:"removal,omitempty"`
	// RecentRemovals are removals without an approval. They count in maxRemoved until an hour
	// has passed since the last of them, so that clusters do not lose the module one after the
	// other either.
	// +optional
	RecentRemovals *RecentRemovals `json:"recentRemovals,omitempty"`
	// Moves are clusters that are about to be assigned a revision. Each is recorded
	// before it is made, by compare-and-swap on the resourceVersion of this object.
	// There are at most 50 at a time.
	// +optional
	// +listType=map
	// +listMapKey=cluster
	// +kubebuilder:validation:MaxItems=50
	Moves []Move `json:"moves,omitempty"`
	// Seen has the resource version of the cache from which the moves were decided.
	// A manager with an older cache must not decide.
	// +optional
	Seen *Seen `json:"seen,omitempty"`
	// History are the last rollouts, the newest first, at most 20.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	History []PastRollout `json:"history,omitempty"`
	// Forecast is when the rollout that is under way ends. It is written with each step, and
	// absent where no earlier rollout of the stages is recorded.
	// +optional
	Forecast *Forecast `json:"forecast,omitempty"`
}

// Retried is how a user has ended a verdict: what was given up is rolled out once more.
type Retried struct {
	// Revision is what was given up.
	Revision string `json:"revision"`
	// At is when that was permitted.
	At metav1.MicroTime `json:"at"`
	// By and Reason are who has retried it, and why.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	By string `json:"by,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// Gate is the RolloutGate that was approved after all, empty if it was retried by a command.
	// Its decision is valid for this rollout.
	// +optional
	Gate string `json:"gate,omitempty"`
}

// Forecast is when a rollout ends, by how long each stage took in the last rollouts.
type Forecast struct {
	// At is when the step was taken at which this was expected.
	At metav1.Time `json:"at"`
	// Earliest, Expected and Latest are when it ends.
	Earliest metav1.Time `json:"earliest"`
	Expected metav1.Time `json:"expected"`
	Latest   metav1.Time `json:"latest"`
	// Decides is the stage that is the last to be complete.
	Decides string `json:"decides"`
}

// Summary counts the clusters of a module, each in total and in as many of the
// others as apply.
type Summary struct {
	// Total is how many are selected and can be assigned a revision, or have been
	// assigned one.
	Total int32 `json:"total"`
	// Updated are assigned the target revision.
	Updated int32 `json:"updated"`
	// Updating are being updated to the revision that they are assigned.
	Updating int32 `json:"updating"`
	// Succeeded run the revision that they are assigned, and are healthy.
	Succeeded int32 `json:"succeeded"`
	// Failed have failed at the revision that they are assigned, or missed its deadline.
	Failed int32 `json:"failed"`
	// Waiting are not assigned the target revision yet.
	Waiting int32 `json:"waiting"`
	// Held are pinned by a user.
	Held int32 `json:"held"`
	// Unreachable do not answer.
	Unreachable int32 `json:"unreachable"`
	// Skipped are not assigned the target revision because nothing would come of it now:
	// they are suspended, or do not answer. They are assigned it once that is over.
	Skipped int32 `json:"skipped"`
}

// StageStatus counts the clusters of a stage.
type StageStatus struct {
	// Name is that of the stage.
	Name string `json:"name"`
	// State is a word: Complete, Updating, or the reason why it waits.
	State string `json:"state"`
	// Message says why it is not complete.
	// +optional
	Message string `json:"message,omitempty"`
	// Total are its clusters.
	Total int32 `json:"total"`
	// Updated are assigned the target revision.
	Updated int32 `json:"updated"`
	// Ready are those of them that run it and are healthy.
	Ready int32 `json:"ready"`
	// Failed are those of them that have failed.
	Failed int32 `json:"failed"`
	// StartedAt is when its first cluster was assigned the target revision, FinishedAt
	// when the stage was first complete there.
	// +optional
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`
	// +optional
	FinishedAt *metav1.MicroTime `json:"finishedAt,omitempty"`
}

// FailingCluster is a cluster that has failed.
type FailingCluster struct {
	// Name is that of the cluster.
	Name string `json:"name"`
	// Revision is what it was assigned.
	Revision string `json:"revision"`
	// Reason is the reason of the failure, as one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message says what is wrong.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// Move is a cluster that is about to be assigned a revision.
type Move struct {
	// Cluster is its name.
	Cluster string `json:"cluster"`
	// Revision is what it is assigned.
	Revision string `json:"revision"`
	// Repair is true if the cluster was not ready, so that the update made nothing
	// unavailable. If the cluster becomes ready before, the update is not made.
	// +optional
	Repair bool `json:"repair,omitempty"`
	// Unready is that of the assignment: the cluster was not ready before.
	// +optional
	Unready bool `json:"unready,omitempty"`
	// Remove is true if the cluster loses the module, and Revision is what it has.
	// +optional
	Remove bool `json:"remove,omitempty"`
	// Approved is true of a removal that an approval has permitted.
	// +optional
	Approved bool `json:"approved,omitempty"`
	// AssignedAt is since when the cluster has what it loses, so that nothing else is
	// removed. Otherwise it is when the assignment begins, if that is not At: a clock that
	// was ahead has dated what the cluster has later than At.
	// +optional
	AssignedAt *metav1.MicroTime `json:"assignedAt,omitempty"`
	// UID and Generation are those of the assemblage as it was when that was decided, and
	// Fence is its annotation spillway.dev/withdrawn. While they are unchanged, the move may
	// be made at any moment.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Fence string `json:"fence,omitempty"`
	// At is when that was decided.
	At metav1.MicroTime `json:"at"`
}

// RemovalStatus is the progress of the removal of a module from clusters that its
// selector no longer matches.
type RemovalStatus struct {
	// Clusters is how many lose the module, Removing how many of them are losing it now.
	Clusters int32 `json:"clusters"`
	Removing int32 `json:"removing"`
	// Approval is the approval that a user must give before they lose it, empty if
	// none is needed: the value of the annotation spillway.dev/approve-removal. It
	// names their number, and is valid for these clusters only.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Approval string `json:"approval,omitempty"`
	// Approved is the approval that was accepted, and Left how many clusters may
	// still lose the module by it. It lapses once no cluster is to lose the module,
	// or when the annotation is changed or removed.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Approved string `json:"approved,omitempty"`
	// +optional
	Left int32 `json:"left,omitempty"`
}

// RecentRemovals are removals that were permitted without an approval.
type RecentRemovals struct {
	// Clusters is how many lost the module.
	Clusters int32 `json:"clusters"`
	// At is when the last of them was permitted.
	At metav1.MicroTime `json:"at"`
}

// Seen are resource versions.
type Seen struct {
	// Assemblages is the resource version of their cache.
	// +optional
	Assemblages string `json:"assemblages,omitempty"`
}

// PastRollout is one of the last rollouts.
type PastRollout struct {
	// Revision is what was rolled out.
	Revision string `json:"revision"`
	// StartedAt is when it began.
	StartedAt metav1.MicroTime `json:"startedAt"`
	// FinishedAt is when it ended, absent while it runs.
	// +optional
	FinishedAt *metav1.MicroTime `json:"finishedAt,omitempty"`
	// Outcome is Running, Complete, Failed, RolledBack or Superseded.
	Outcome string `json:"outcome"`
	// Message says why it was given up: which cluster has failed, and how.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// ChangedBy is the field manager that wrote the revision, the user who ordered to return to it, or spillway if clusters
	// were returned to it. It is absent where that is not known.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	ChangedBy string `json:"changedBy,omitempty"`
	// UndoneBy is who ended it before it was complete: spillway if it was given up, the user who ordered to
	// return to another revision, else the field manager that wrote the next one. It is absent where that is not known.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	UndoneBy string `json:"undoneBy,omitempty"`
	// Stages are those that it went through, in their order. They are kept of the newest five
	// rollouts that are complete.
	// +optional
	// +listType=atomic
	Stages []PastStage `json:"stages,omitempty"`
}

// PastStage is a stage of one of the last rollouts.
type PastStage struct {
	// Name is that of the stage.
	Name string `json:"name"`
	// StartedAt is when its first cluster was assigned the revision, FinishedAt when the
	// stage was complete.
	StartedAt  metav1.MicroTime `json:"startedAt"`
	FinishedAt metav1.MicroTime `json:"finishedAt"`
}
