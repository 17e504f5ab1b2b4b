package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/api/record"
)

// RolloutGroup is a group of StatefulSets, each of them a zone, that roll one at a
// time. It has their policy, their lock and their state.
//
// The manager creates one for each value of the label rollout-group, with that name.
// One that a user created or changed is kept when the last StatefulSet has left.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=rog,categories={all,spillway}
// +kubebuilder:printcolumn:name=Phase,type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name=Complete,type=integer,JSONPath=`.status.rollout.units.complete`
// +kubebuilder:printcolumn:name=Total,type=integer,JSONPath=`.status.rollout.units.total`
// +kubebuilder:printcolumn:name=Waiting-For,type=string,JSONPath=`.status.waitingFor`
// +kubebuilder:printcolumn:name=Zone,type=string,JSONPath=`.status.zone`,priority=1
// +kubebuilder:printcolumn:name=Since,type=date,JSONPath=`.status.since`,priority=1
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type RolloutGroup struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the policy.
	// +optional
	Spec RolloutGroupSpec `json:"spec,omitempty"`
	// Status has the lock, and the progress of the rollout.
	// +optional
	Status RolloutGroupStatus `json:"status,omitempty"`
}

// RolloutGroupList is a list of RolloutGroups.
//
// +kubebuilder:object:root=true
type RolloutGroupList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []RolloutGroup `json:"items"`
}

// RolloutGroupSpec is the policy of a group. What is set here wins over the
// annotations of the StatefulSets.
type RolloutGroupSpec struct {
	// ZoneOrder lists the StatefulSets in the order in which they roll. Those that
	// it does not name follow, by their annotations and then by name.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	ZoneOrder []string `json:"zoneOrder,omitempty"`
	// MaxUnavailable is how many Pods of a zone may be unavailable at a time, as
	// a number or as a percentage of its replicas, rounded down, at least 1.
	// Default: the annotation of each StatefulSet, else 1.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : true",message="must be a number of at least 1, or a percentage from 1% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// MinReadySeconds is how long a Pod must be ready before it counts as
	// available. That of a StatefulSet counts where it is longer.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
	// Soak is how long a whole zone must stay healthy before the next one starts:
	// "5m".
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`
	Soak *metav1.Duration `json:"soak,omitempty"`
	// Gates must pass for each zone, before the next one starts.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Gates []ZoneGate `json:"gates,omitempty"`
	// ProgressDeadlineSeconds is how long a Pod may take to become available after
	// it was replaced, before the rollout counts as failed. It has to terminate first,
	// and then to start. Default: the longest terminationGracePeriodSeconds of the
	// group, and 570; at least 600.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
	// MaintenanceWindows are when Pods may be replaced. Outside of them no
	// replacement begins, and an open zone is held again; replacements that have
	// begun are completed. Default: always.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	MaintenanceWindows []MaintenanceWindow `json:"maintenanceWindows,omitempty"`
	// Pause prevents further replacements until it is removed.
	// +optional
	Pause *Pause `json:"pause,omitempty"`
	// Retry starts the progress deadline of what has failed again.
	// +optional
	Retry *Retry `json:"retry,omitempty"`
	// StuckPods says what happens to outdated Pods that cannot become ready without
	// being replaced: a container crashes, or its image or config is wrong, or the Pod
	// has not been ready for stuckAfterSeconds. Replace, the default, replaces them
	// first, one at a time, even if the budget is used up or it is not the turn of
	// their zone, because nothing becomes unavailable; but not in a second zone while
	// one is disrupted. So an OrderedReady StatefulSet does not stay stuck on a broken
	// revision. Keep waits until they are ready.
	// +optional
	StuckPods StuckPods `json:"stuckPods,omitempty"`
	// StuckAfterSeconds is how long an outdated Pod may be not ready before it counts
	// as stuck. Until then it may become ready, and is replaced in turn, like any other.
	// One that was never ready, at a revision at which no other Pod of its zone was, does not
	// wait. Default 300.
	// +optional
	// +kubebuilder:validation:Minimum=1
	StuckAfterSeconds *int32 `json:"stuckAfterSeconds,omitempty"`
	// HistoryLimit is how many past rollouts are kept. Default 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	HistoryLimit *int32 `json:"historyLimit,omitempty"`
}

// ZoneGate is a gate of each zone.
type ZoneGate struct {
	GateReference `json:",inline"`

	// When is After a zone is up to date and has soaked, or During its rollout: then a
	// refusal stops the Pods that have not been replaced yet. Default After.
	// +optional
	// +kubebuilder:validation:Enum=After;During
	When GateTime `json:"when,omitempty"`
}

// StuckPods says what happens to outdated Pods that cannot become ready.
// +kubebuilder:validation:Enum=Replace;Keep
type StuckPods string

// The values of stuckPods.
const (
	ReplaceStuckPods StuckPods = "Replace"
	KeepStuckPods    StuckPods = "Keep"
)

// MaintenanceWindow is a recurring period of time.
type MaintenanceWindow struct {
	// Schedule is when it opens, as of a CronJob: "0 2 * * 1-5".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Schedule string `json:"schedule"`
	// DurationSeconds is how long it stays open, up to 31 days.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2678400
	DurationSeconds int32 `json:"durationSeconds"`
	// TimeZone is that of the schedule: "Europe/London". Default UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
}

// Pause is the request of a user to stop a rollout.
type Pause struct {
	// Reason is why the user requests it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// By is the name of the user.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	By string `json:"by,omitempty"`
	// Since is when it was requested.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// Retry is the request of a user to retry what has failed.
type Retry struct {
	// At is when it was requested. Deadlines that began earlier start again then.
	At metav1.Time `json:"at"`
	// Reason is why the user requests it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// By is the name of the user.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	By string `json:"by,omitempty"`
}

// RolloutGroupStatus has the lock, and the progress of the rollout.
type RolloutGroupStatus struct {
	// ObservedGeneration is the generation of the group that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Ready, Reconciling and Stalled; and ReplicasContested while another
	// client sets replicas back.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Phase is Complete, Progressing, Waiting, Paused, Failed or Stalled.
	// +optional
	Phase string `json:"phase,omitempty"`
	// Zone is the number of the zone that is updating, and of how many: "2/3".
	// +optional
	Zone string `json:"zone,omitempty"`
	// Updated is how many Pods are up to date and available, of how many: "7/9".
	// +optional
	Updated string `json:"updated,omitempty"`
	// WaitingFor is the main reason why it is not complete, as a sentence.
	// +optional
	WaitingFor string `json:"waitingFor,omitempty"`
	// Since is when that wait began.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// Lock is who may disrupt the group. It is acquired and released by
	// compare-and-swap on the resourceVersion of this object.
	// +optional
	Lock *Lock `json:"lock,omitempty"`
	// Moves are the replacements that have begun or are about to begin. Each is
	// recorded before it is made.
	// +optional
	// +listType=atomic
	Moves []Move `json:"moves,omitempty"`
	// Seen has the resource versions of the caches from which the lock and the moves
	// were decided. A manager with an older cache must not decide.
	// +optional
	Seen *Seen `json:"seen,omitempty"`
	// Downscale is the downscale that the lock is held for, or one that does not need it. It
	// is recorded before any Pod is prepared for it, and stays until it is observed or undone.
	// +optional
	Downscale *Downscale `json:"downscale,omitempty"`
	// Downscales has the last downscale of each zone.
	// +optional
	// +listType=map
	// +listMapKey=zone
	Downscales []Downscale `json:"downscales,omitempty"`
	// RefusedDownscales has, for each zone, the downscale that was refused last, until
	// one of the zone succeeds.
	// +optional
	// +listType=map
	// +listMapKey=zone
	RefusedDownscales []RefusedDownscale `json:"refusedDownscales,omitempty"`
	// Rollout is the record of the rollout: how far it has come, and why it has not come further. Absent if no
	// manager has recorded it yet.
	// +optional
	Rollout *record.Rollout `json:"rollout,omitempty"`
	// Zones has a row for each zone, in the order in which they roll.
	// +optional
	// +listType=map
	// +listMapKey=name
	Zones []Zone `json:"zones,omitempty"`
	// History are the last rollouts, the newest first.
	// +optional
	// +listType=atomic
	History []Rollout `json:"history,omitempty"`
	// Forecast is when the rollout that is under way ends. It is written with each step, and
	// absent where no earlier rollout of the zones is recorded.
	// +optional
	Forecast *Forecast `json:"forecast,omitempty"`
}

// Forecast is when a rollout ends, by how long each zone took in the last rollouts.
type Forecast struct {
	// At is when the step was taken at which this was expected.
	At metav1.Time `json:"at"`
	// Earliest, Expected and Latest are when it ends.
	Earliest metav1.Time `json:"earliest"`
	Expected metav1.Time `json:"expected"`
	Latest   metav1.Time `json:"latest"`
	// Decides is the zone that is the last to be complete.
	Decides string `json:"decides"`
}

// Purpose is what the lock is held for.
// +kubebuilder:validation:Enum=rollout;downscale;eviction
type Purpose string

// The purposes of the lock.
const (
	PurposeRollout   Purpose = "rollout"
	PurposeDownscale Purpose = "downscale"
	PurposeEviction  Purpose = "eviction"
)

// Lock is held by the operation that may disrupt the group. The holder names the purpose
// and the object, not a process: a manager that continues the same work after a
// crash holds it already.
type Lock struct {
	// Holder is who holds it: "rollout/ingester".
	Holder string `json:"holder"`
	// Purpose is what it is held for.
	Purpose Purpose `json:"purpose"`
	// Zone is the StatefulSet that may be disrupted, empty for several.
	// +optional
	Zone string `json:"zone,omitempty"`
	// Since is when it was acquired.
	Since metav1.MicroTime `json:"since"`
	// Expires is when it counts as free even if it is not released.
	// +optional
	Expires *metav1.MicroTime `json:"expires,omitempty"`
}

// Downscale lowers the replicas of a zone.
type Downscale struct {
	// Zone is the StatefulSet.
	Zone string `json:"zone"`
	// UID is that of the StatefulSet.
	UID types.UID `json:"uid"`
	// From and To are its replicas before and after.
	From int32 `json:"from"`
	To   int32 `json:"to"`
	// At is when it was permitted.
	At metav1.MicroTime `json:"at"`
	// Prepares is true if Pods are prepared before they are removed.
	// +optional
	Prepares bool `json:"prepares,omitempty"`
	// AdmittedAt is when the request was admitted. Its write may follow for
	// as long as a request lasts.
	// +optional
	AdmittedAt *metav1.MicroTime `json:"admittedAt,omitempty"`
	// ResourceVersion is that of the StatefulSet that the request was about to change. Once
	// it has another, that request writes nothing: the API server asks again.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Unscheduled is true if no node ever had the Pods that go. It takes nothing down, so it does not
	// need the lock; until it is observed, these Pods count as unavailable.
	// +optional
	Unscheduled bool `json:"unscheduled,omitempty"`
	// Refused is true if it was refused, and the lock released, but some Pods must
	// still be called to stay.
	// +optional
	Refused bool `json:"refused,omitempty"`
}

// RefusedDownscale is a downscale that was refused.
type RefusedDownscale struct {
	// Zone is the StatefulSet.
	Zone string `json:"zone"`
	// UID is that of the StatefulSet.
	UID types.UID `json:"uid"`
	// From and To are its replicas before and after.
	From int32 `json:"from"`
	To   int32 `json:"to"`
	// At is when it was refused.
	At metav1.MicroTime `json:"at"`
	// Message is why.
	Message string `json:"message"`
	// Attempts is how often it was refused; RetryAt is when the manager tries again,
	// absent where another client requested it.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// +optional
	RetryAt *metav1.MicroTime `json:"retryAt,omitempty"`
}

// Move is a Pod or a zone that is about to be disrupted, or is being replaced.
type Move struct {
	// Zone is the StatefulSet.
	Zone string `json:"zone"`
	// Pod is the Pod that is replaced; empty where the StatefulSet itself is opened.
	// +optional
	Pod string `json:"pod,omitempty"`
	// Lend is true where the StatefulSet is opened by setting its type to OnDelete
	// for its turn, so that its controller replaces no Pod.
	// +optional
	Lend bool `json:"lend,omitempty"`
	// Repair is true of a Pod that was not available when that was decided.
	// +optional
	Repair bool `json:"repair,omitempty"`
	// UID and ResourceVersion are those of the Pod, or of the StatefulSet, as it was
	// when that was decided. While they are unchanged, it may be disrupted at any
	// moment.
	UID             types.UID `json:"uid"`
	ResourceVersion string    `json:"resourceVersion"`
	// Revision is the target revision.
	Revision string `json:"revision"`
	// At is when it was decided.
	At metav1.MicroTime `json:"at"`
}

// Seen are resource versions.
type Seen struct {
	// Pods and StatefulSets are the resource versions of their caches.
	// +optional
	Pods string `json:"pods,omitempty"`
	// +optional
	StatefulSets string `json:"statefulSets,omitempty"`
}

// Zone is the state of a zone.
type Zone struct {
	// Name is that of the StatefulSet.
	Name string `json:"name"`
	// Updated is how many Pods are up to date and available, Ready how many are
	// available at any revision, Total the number of replicas.
	Updated int32 `json:"updated"`
	Ready   int32 `json:"ready"`
	Total   int32 `json:"total"`
	// Revision is the last revision at which the whole zone was healthy.
	// +optional
	Revision string `json:"revision,omitempty"`
	// Target is the revision to roll out.
	// +optional
	Target string `json:"target,omitempty"`
	// StartedAt is when the update of the zone to its target began.
	// +optional
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`
	// Opened is true once the controller of the StatefulSet may replace Pods on its
	// own, until it is certain which Pods it has not replaced.
	// +optional
	Opened bool `json:"opened,omitempty"`
	// State is a word: Complete, Updating, or the reason why it waits.
	// +optional
	State string `json:"state,omitempty"`
	// Message says why it is not complete.
	// +optional
	Message string `json:"message,omitempty"`
	// Since is when that began.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// Rollout is one of the last rollouts.
type Rollout struct {
	// Number counts the rollouts of the group.
	Number int64 `json:"number"`
	// Zones are the zones that were updated, and their revisions.
	// +optional
	// +listType=map
	// +listMapKey=name
	Zones []ZoneRevision `json:"zones,omitempty"`
	// StartedAt is when the first Pod was replaced.
	StartedAt metav1.MicroTime `json:"startedAt"`
	// FinishedAt is when it ended, absent while it runs.
	// +optional
	FinishedAt *metav1.MicroTime `json:"finishedAt,omitempty"`
	// Outcome is Running, Complete, Failed or Superseded.
	Outcome string `json:"outcome"`
	// Message says why it has failed: which Pod, and how. It stays once another rollout has begun.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// ChangedBy is the field manager that wrote the Pod templates: spillway if that was a change of config. It is absent
	// where that is not known.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	ChangedBy string `json:"changedBy,omitempty"`
	// UndoneBy is who ended it before it was complete: the field manager that wrote the next Pod template, which is
	// spillway if that was a change of config. It is absent where that is not known.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	UndoneBy string `json:"undoneBy,omitempty"`
	// Duration is how long it took.
	// +optional
	Duration string `json:"duration,omitempty"`
}

// ZoneRevision is the revision that a zone was updated to.
type ZoneRevision struct {
	// Name is that of the StatefulSet.
	Name string `json:"name"`
	// Revision is that of its Pods.
	Revision string `json:"revision"`
	// StartedAt is when its first Pod was replaced, FinishedAt when the whole zone
	// was healthy at the revision, absent until then.
	// +optional
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`
	// +optional
	FinishedAt *metav1.MicroTime `json:"finishedAt,omitempty"`
}
