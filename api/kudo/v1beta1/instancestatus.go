package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/record"
)

// InstanceStatus is which plan is running, how far it is, and what was last
// applied. All of it is written in one update, by compare-and-swap on the
// resourceVersion of the Instance, before anything that it permits is done.
type InstanceStatus struct {
	// ObservedGeneration is the generation of the Instance that the rest is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// AggregatedStatus names the plan that is running, at most one.
	// +optional
	AggregatedStatus AggregatedStatus `json:"aggregatedStatus,omitempty"`
	// PlanStatus is the state of the last execution of each plan, by name.
	// +optional
	PlanStatus map[string]PlanStatus `json:"planStatus,omitempty"`
	// Place is the phase and the step that the plan is at: "deploy/nodes".
	// +optional
	Place string `json:"place,omitempty"`
	// WaitingFor is the main reason why it is not done, as a sentence.
	// +optional
	WaitingFor string `json:"waitingFor,omitempty"`
	// Since is when that wait began.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// Rollout is the record of the rollout: how far it has come, and why it has not come further. Absent if no
	// manager has recorded it yet.
	// +optional
	Rollout *record.Rollout `json:"rollout,omitempty"`
	// LastAppliedInstanceSpec is the spec that was last applied. It moves when its plan
	// succeeds; what differs from it must still be applied.
	// +optional
	LastAppliedInstanceSpec *InstanceSpec `json:"lastAppliedInstanceSpec,omitempty"`
	// LastAppliedContentHash is that of the OperatorVersion's content with which it was
	// applied, whose defaults are the values of parameters that it does not set.
	// +optional
	LastAppliedContentHash string `json:"lastAppliedContentHash,omitempty"`
	// Execution is the plan that is running, or the last one that ran.
	// +optional
	Execution *Execution `json:"execution,omitempty"`
	// Attempted is a spec that a plan was to apply and has not.
	// +optional
	Attempted *Attempt `json:"attempted,omitempty"`
	// ImmutableParameters are the values that cannot change, as they were when the
	// Instance was created.
	// +optional
	ImmutableParameters map[string]string `json:"immutableParameters,omitempty"`
	// Inventory are the objects that plans have applied, or were about to.
	// +optional
	// +listType=atomic
	Inventory []InventoryEntry `json:"inventory,omitempty"`
	// History are the last executions, the newest first, at most ten of each plan.
	// +optional
	// +listType=atomic
	History []PastExecution `json:"history,omitempty"`
	// Drift are objects that differ from what plans have applied, as other clients have changed or
	// deleted them; absent if there are none. It is found while no plan is running.
	// +optional
	Drift *Drift `json:"drift,omitempty"`
	// KUDOExecutions are the executions of KUDO before Spillway managed the Instance. What they
	// applied without a namespace belongs to the Instance.
	// +optional
	// +listType=set
	KUDOExecutions []types.UID `json:"kudoExecutions,omitempty"`
	// Forecast is when the plan that is running ends. It is written with each step that begins,
	// and absent where no earlier execution of the plan is recorded.
	// +optional
	Forecast *Forecast `json:"forecast,omitempty"`
}

// Drift counts the objects that differ from what plans have applied.
type Drift struct {
	// Count is how many differ.
	Count int32 `json:"count"`
	// Objects are examples of them, at most 10.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Objects []DriftedObject `json:"objects"`
}

// DriftedObject is an object that differs from what a plan has applied.
type DriftedObject struct {
	// +optional
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Missing is true of an object that was deleted.
	// +optional
	Missing bool `json:"missing,omitempty"`
	// By is the field manager that was the last to write it, besides Spillway's.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	By string `json:"by,omitempty"`
}

// Forecast is when a plan ends, by how long each step took in its last executions.
type Forecast struct {
	// At is when the step began at which this was expected.
	At metav1.Time `json:"at"`
	// Earliest, Expected and Latest are when it ends.
	Earliest metav1.Time `json:"earliest"`
	Expected metav1.Time `json:"expected"`
	Latest   metav1.Time `json:"latest"`
	// Decides is the step that is the last to be complete, as PHASE/STEP.
	Decides string `json:"decides"`
}

// AggregatedStatus is the state of the Instance as a whole.
type AggregatedStatus struct {
	// Status is that of the plan that is running, or of the last one that ran.
	// +optional
	Status ExecutionStatus `json:"status,omitempty"`
	// ActivePlan is the plan that is running, empty if none is.
	// +optional
	ActivePlan string `json:"activePlan,omitempty"`
}

// PlanStatus is the state of a plan.
type PlanStatus struct {
	// Name is that of the plan.
	// +optional
	Name string `json:"name,omitempty"`
	// Status is its state.
	// +optional
	Status ExecutionStatus `json:"status,omitempty"`
	// Message says why, if it failed.
	// +optional
	Message string `json:"message,omitempty"`
	// LastUpdatedTimestamp is when its state last changed.
	// +optional
	LastUpdatedTimestamp *metav1.Time `json:"lastUpdatedTimestamp,omitempty"`
	// Phases are the states of its phases.
	// +optional
	// +listType=atomic
	Phases []PhaseStatus `json:"phases,omitempty"`
	// UID is that of the execution.
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// PhaseStatus is the state of a phase.
type PhaseStatus struct {
	// Name is that of the phase.
	// +optional
	Name string `json:"name,omitempty"`
	// Status is its state.
	// +optional
	Status ExecutionStatus `json:"status,omitempty"`
	// Message says why, if it failed.
	// +optional
	Message string `json:"message,omitempty"`
	// StartedAt is when its first step began; its timeout runs from then.
	// +optional
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`
	// Steps are the states of its steps.
	// +optional
	// +listType=atomic
	Steps []StepStatus `json:"steps,omitempty"`
}

// StepStatus is the state of a step.
type StepStatus struct {
	// Name is that of the step.
	// +optional
	Name string `json:"name,omitempty"`
	// Status is its state.
	// +optional
	Status ExecutionStatus `json:"status,omitempty"`
	// Message says why, if it failed.
	// +optional
	Message string `json:"message,omitempty"`
	// StartedAt is when it began; its timeout runs from then.
	// +optional
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`
	// FinishedAt is when it was complete.
	// +optional
	FinishedAt *metav1.MicroTime `json:"finishedAt,omitempty"`
	// Attempts are how often it failed since it last succeeded.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// FailingSince is since when it has failed without succeeding.
	// +optional
	FailingSince *metav1.MicroTime `json:"failingSince,omitempty"`
	// FailedAt is when it last failed.
	// +optional
	FailedAt *metav1.MicroTime `json:"failedAt,omitempty"`
	// RetryAt is when it is retried.
	// +optional
	RetryAt *metav1.MicroTime `json:"retryAt,omitempty"`
}

// Cause is why a plan runs.
type Cause string

// The causes.
const (
	// CauseCreate: the Instance was never deployed.
	CauseCreate Cause = "Create"
	// CauseUpgrade: it refers to another OperatorVersion.
	CauseUpgrade Cause = "Upgrade"
	// CauseParameters: its parameters changed.
	CauseParameters Cause = "Parameters"
	// CauseRequest: a user requested the plan.
	CauseRequest Cause = "Request"
	// CauseRetry: a user retried what had failed.
	CauseRetry Cause = "Retry"
	// CauseDelete: the Instance is being deleted.
	CauseDelete Cause = "Delete"
)

// Result is how an execution ended.
type Result string

// The results; while it runs there is none.
const (
	// ResultComplete: all of it is done.
	ResultComplete Result = "Complete"
	// ResultFailed: it failed for good.
	ResultFailed Result = "Failed"
	// ResultAbandoned: it was abandoned by a user.
	ResultAbandoned Result = "Abandoned"
	// ResultSuperseded: another one replaced it.
	ResultSuperseded Result = "Superseded"
)

// Execution is a plan that is running, and all that must not change while it is.
type Execution struct {
	// UID distinguishes it from all others.
	UID types.UID `json:"uid"`
	// Plan is the plan.
	Plan string `json:"plan"`
	// Cause is why it runs.
	Cause Cause `json:"cause"`
	// Changed are the names of the parameters, or the OperatorVersions, that changed.
	// +optional
	Changed string `json:"changed,omitempty"`
	// ChangedBy is who made it run: the field manager that wrote the Instance, or the user who ordered to try again. It is
	// absent where that is not known.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	ChangedBy string `json:"changedBy,omitempty"`
	// Spec is what it applies, as it was when it began.
	Spec InstanceSpec `json:"spec"`
	// ContentHash is that of the OperatorVersion's content with which it runs.
	ContentHash string `json:"contentHash"`
	// Advances: when it succeeds, its spec is the one last applied.
	// +optional
	Advances bool `json:"advances,omitempty"`
	// Touched: something of it may have been done.
	// +optional
	Touched bool `json:"touched,omitempty"`
	// StartedAt is when it began; the timeout of the plan runs from then.
	StartedAt metav1.MicroTime `json:"startedAt"`
	// FinishedAt is when it ended, absent while it runs.
	// +optional
	FinishedAt *metav1.MicroTime `json:"finishedAt,omitempty"`
	// Result is how it ended, empty while it runs.
	// +optional
	Result Result `json:"result,omitempty"`
	// Message says why it ended so.
	// +optional
	Message string `json:"message,omitempty"`
}

// Attempt is a spec that a plan was to apply and has not. It is not retried
// automatically.
type Attempt struct {
	// Spec is what was to be applied.
	Spec InstanceSpec `json:"spec"`
	// ContentHash is that of the OperatorVersion's content with which it was to be applied.
	// +optional
	ContentHash string `json:"contentHash,omitempty"`
	// Plan is the plan that did not succeed.
	Plan string `json:"plan"`
	// Touched: some of it may be applied, so that what differs from it has changed.
	// +optional
	Touched bool `json:"touched,omitempty"`
	// Result is how the plan ended, Message why.
	Result Result `json:"result"`
	// +optional
	Message string `json:"message,omitempty"`
}

// InventoryEntry is an object that a plan has applied, or was about to.
type InventoryEntry struct {
	// +optional
	Group   string `json:"group,omitempty"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// CompletedIn is the execution and the step in which a Job was complete, of one that Kubernetes
	// removes: it does not run again there.
	// +optional
	CompletedIn string `json:"completedIn,omitempty"`
	// Applied identifies the fields that its step has applied, once that is complete. While the
	// Instance owns just these, no other client has changed one of them.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Applied string `json:"applied,omitempty"`
	// AppliedIn is the execution and the step that applied it last.
	// +optional
	AppliedIn string `json:"appliedIn,omitempty"`
	// Correction is the last time that it was applied again because it differed, absent if it never
	// was since its step.
	// +optional
	Correction *Correction `json:"correction,omitempty"`
}

// Correction is that an object was applied again which another client had changed or deleted. It is
// recorded before that is tried.
type Correction struct {
	// Times is how often it was tried since the object last stayed as it was applied.
	Times int32 `json:"times"`
	// At is when it was last tried.
	At metav1.MicroTime `json:"at"`
	// Message says why the API server did not accept it, empty if it did.
	// +optional
	Message string `json:"message,omitempty"`
}

// PastExecution is one of the last executions.
type PastExecution struct {
	// UID is that of the execution.
	UID types.UID `json:"uid"`
	// Plan is the plan.
	Plan string `json:"plan"`
	// Cause is why it ran.
	Cause Cause `json:"cause"`
	// Changed are the names of the parameters, or the OperatorVersions, that changed.
	// +optional
	Changed string `json:"changed,omitempty"`
	// OperatorVersion is what it ran with, ContentHash the content of that.
	OperatorVersion string `json:"operatorVersion"`
	ContentHash     string `json:"contentHash"`
	// Advances: if it succeeded, its spec was the one last applied.
	// +optional
	Advances bool `json:"advances,omitempty"`
	// Spec is what it was to apply, so that the Instance can return to it. It is kept of
	// executions that advance, as long as those of the newest together are not too long.
	// +optional
	Spec *InstanceSpec `json:"spec,omitempty"`
	// StartedAt is when it began.
	StartedAt metav1.MicroTime `json:"startedAt"`
	// FinishedAt is when it ended.
	FinishedAt metav1.MicroTime `json:"finishedAt"`
	// Result is how it ended.
	Result Result `json:"result"`
	// Message says why.
	// +optional
	Message string `json:"message,omitempty"`
	// ChangedBy is who made it run: the field manager that wrote the Instance, or the user who ordered to try again. It is
	// absent where that is not known.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	ChangedBy string `json:"changedBy,omitempty"`
	// UndoneBy is who ended it before it was complete: the field manager that wrote the parameters or the
	// OperatorVersion that were applied next. It is absent where that is not known.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	UndoneBy string `json:"undoneBy,omitempty"`
	// Steps are those that it carried out. They are kept of the newest five executions of
	// each plan that completed, as long as those of the newest together are not too many.
	// +optional
	// +listType=atomic
	Steps []PastStep `json:"steps,omitempty"`
}

// PastStep is a step of one of the last executions.
type PastStep struct {
	// Name is that of the step, as PHASE/STEP.
	Name string `json:"name"`
	// StartedAt is when it began, FinishedAt when it was complete.
	StartedAt  metav1.MicroTime `json:"startedAt"`
	FinishedAt metav1.MicroTime `json:"finishedAt"`
}

// Running is the execution that is running, nil if none is.
func (s *InstanceStatus) Running() *Execution {
	if e := s.Execution; e != nil && e.FinishedAt == nil {
		return e
	}
	return nil
}
