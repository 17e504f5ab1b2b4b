package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// GatePassed is the condition of a RolloutGate in which a client reports its
// decision: True lets the rollout through, False stops it, Unknown or none makes it
// wait.
const GatePassed = "Passed"

// RolloutGate is a decision that a rollout waits for: the question, and the verdict in the
// condition Passed of its status. If the namespace has a GateTemplate of the name of the
// gate, Spillway decides, as that says. Otherwise a user or a program does. Any client
// that may update rolloutgates/status may decide.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=gate;gates,categories={spillway}
// +kubebuilder:printcolumn:name=For,type=string,JSONPath=`.spec.targetRef.name`
// +kubebuilder:printcolumn:name=Revision,type=string,JSONPath=`.spec.revision`
// +kubebuilder:printcolumn:name=Stage,type=string,JSONPath=`.spec.stage`
// +kubebuilder:printcolumn:name=Gate,type=string,JSONPath=`.spec.gate`
// +kubebuilder:printcolumn:name=When,type=string,JSONPath=`.spec.when`
// +kubebuilder:printcolumn:name=Passed,type=string,JSONPath=`.status.conditions[?(@.type=='Passed')].status`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type RolloutGate struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is to be decided.
	// +kubebuilder:validation:XValidation:rule="self.targetRef == oldSelf.targetRef && self.revision == oldSelf.revision && self.stage == oldSelf.stage && self.gate == oldSelf.gate && self.when == oldSelf.when",message="the spec of a RolloutGate is immutable"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.reachedAt) || has(self.reachedAt) && self.reachedAt == oldSelf.reachedAt",message="reachedAt is immutable once it is set"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.endedAt) || has(self.endedAt) && self.endedAt == oldSelf.endedAt",message="endedAt is immutable once it is set"
	Spec RolloutGateSpec `json:"spec"`
	// Status is what was decided.
	// +optional
	Status RolloutGateStatus `json:"status,omitempty"`
}

// RolloutGateList is a list of RolloutGates.
//
// +kubebuilder:object:root=true
type RolloutGateList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []RolloutGate `json:"items"`
}

// GateReference names a gate of a rollout.
type GateReference struct {
	// Name is that of the gate, and of the GateTemplate that says how it is decided.
	// Without a GateTemplate, a user or another program decides.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// OnRefusal is what happens if the gate is refused: Stop (default) stops the rollout,
	// Continue continues it.
	// +optional
	OnRefusal OnRefusal `json:"onRefusal,omitempty"`
}

// OnRefusal is what happens if a gate is refused.
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:XValidation:rule="self in ['Stop', 'Continue']",message="must be Stop or Continue: only a Module returns to the previous revision when a gate is refused"
type OnRefusal string

// The answers to a refusal.
const (
	RefusalStop     OnRefusal = "Stop"
	RefusalContinue OnRefusal = "Continue"
)

// RolloutGateSpec is what is to be decided.
type RolloutGateSpec struct {
	// TargetRef is what rolls out.
	TargetRef TargetReference `json:"targetRef"`
	// Revision is what is rolled out. Another revision has gates of its own.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision"`
	// Stage is the part of the rollout before or after which the gate must pass: a stage,
	// a zone, the phase or step of a plan.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Stage string `json:"stage"`
	// Gate is the name of the decision: "approve", "acme.io/error-rate".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Gate string `json:"gate"`
	// When is Before the stage begins, After it is healthy and has soaked, or During its
	// rollout.
	// +kubebuilder:validation:Enum=Before;After;During
	When string `json:"when"`
	// ReachedAt is when the rollout reached the gate. Measuring begins then. Absent until
	// then.
	// +optional
	ReachedAt *metav1.MicroTime `json:"reachedAt,omitempty"`
	// EndedAt is when nothing but gates kept the stage from being complete. A gate During it
	// passes with a measurement from then on. Absent until then, and of other gates.
	// +optional
	EndedAt *metav1.MicroTime `json:"endedAt,omitempty"`
}

// TargetReference is an object that rolls out, in the same namespace.
type TargetReference struct {
	// APIVersion and Kind are those of the object.
	// +kubebuilder:validation:MinLength=1
	APIVersion string `json:"apiVersion"`
	// +kubebuilder:validation:MinLength=1
	Kind string `json:"kind"`
	// Name is that of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
}

// RolloutGateStatus is what was decided.
type RolloutGateStatus struct {
	// Conditions are Passed, with the reason and the message of the client that decided.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Measurement is what was measured, absent for a gate that is decided by hand.
	// +optional
	Measurement *GateMeasurement `json:"measurement,omitempty"`
}

// GateVerdict is a decision.
// +kubebuilder:validation:Enum=Passed;Refused
type GateVerdict string

// The verdicts.
const (
	VerdictPassed  GateVerdict = "Passed"
	VerdictRefused GateVerdict = "Refused"
)

// GateMeasurement is what was measured, and what follows from it.
type GateMeasurement struct {
	// Template identifies the GateTemplate, as it was when the measuring began.
	Template GateTemplateVersion `json:"template"`
	// DryRun is true if the rollout does not wait for the verdict.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`
	// StartedAt is when the measuring began.
	StartedAt metav1.MicroTime `json:"startedAt"`
	// NextAt is when the next measurement is due, absent after the verdict.
	// +optional
	NextAt *metav1.MicroTime `json:"nextAt,omitempty"`
	// Verdict is what was decided, and Message why. Absent until then.
	// +optional
	Verdict GateVerdict `json:"verdict,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// Succeeded and Failed are how many measurements counted.
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`
	// +optional
	Failed int32 `json:"failed,omitempty"`
	// Errors and NoData are how many did not, since the measuring began.
	// +optional
	Errors int32 `json:"errors,omitempty"`
	// +optional
	NoData int32 `json:"noData,omitempty"`
	// SuccessesInRow and ErrorsInRow are the last measurements of the same result.
	// +optional
	SuccessesInRow int32 `json:"successesInRow,omitempty"`
	// +optional
	ErrorsInRow int32 `json:"errorsInRow,omitempty"`
	// Job is the Job of the measurement that is under way. It is deleted if the gate is
	// decided before it ends.
	// +optional
	Job *GateJob `json:"job,omitempty"`
	// Sent is what the source was asked the last time, without credentials.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Sent string `json:"sent,omitempty"`
	// Last are the last measurements, the newest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	Last []GateSample `json:"last,omitempty"`
}

// GateJob is a Job that runs for a gate.
type GateJob struct {
	// Name and UID are those of the Job, in the namespace of the gate.
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
	// StartedAt is when the measurement began.
	StartedAt metav1.MicroTime `json:"startedAt"`
}

// GateTemplateVersion is a GateTemplate at one generation.
type GateTemplateVersion struct {
	// Name is that of the GateTemplate.
	Name string `json:"name"`
	// UID and Generation say which one it was.
	UID        types.UID `json:"uid"`
	Generation int64     `json:"generation"`
}

// GateSample is one measurement.
type GateSample struct {
	// At is when it was made.
	At metav1.MicroTime `json:"at"`
	// Result is Success, Failure, NoData or Error.
	// +kubebuilder:validation:Enum=Success;Failure;NoData;Error
	Result GateResult `json:"result"`
	// Value is what was measured, or what the error was.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Value string `json:"value,omitempty"`
}

// GateResult is the result of one measurement.
type GateResult string

// The results.
const (
	GateSuccess GateResult = "Success"
	GateFailure GateResult = "Failure"
	GateNoData  GateResult = "NoData"
	GateError   GateResult = "Error"
)
