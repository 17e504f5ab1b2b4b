package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Instance is an application that runs: an OperatorVersion with parameters.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={kudo,spillway}
// +kubebuilder:printcolumn:name=Phase,type=string,JSONPath=`.status.rollout.phase`
// +kubebuilder:printcolumn:name=Complete,type=integer,JSONPath=`.status.rollout.units.complete`
// +kubebuilder:printcolumn:name=Total,type=integer,JSONPath=`.status.rollout.units.total`
// +kubebuilder:printcolumn:name=Waiting-For,type=string,JSONPath=`.status.waitingFor`
// +kubebuilder:printcolumn:name=Plan,type=string,JSONPath=`.status.execution.plan`,priority=1
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.aggregatedStatus.status`,priority=1
// +kubebuilder:printcolumn:name=Step,type=string,JSONPath=`.status.place`,priority=1
// +kubebuilder:printcolumn:name=Since,type=date,JSONPath=`.status.since`,priority=1
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || size(self.metadata.name) <= 63",optionalOldSelf=true,message="metadata.name may have at most 63 characters: it is the value of a label of all objects"
type Instance struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.operatorVersion) && has(self.operatorVersion.name) && self.operatorVersion.name != ''",message="operatorVersion.name must be the name of an OperatorVersion"
	Spec InstanceSpec `json:"spec,omitempty"`
	// Status is which plan is running, and how far it is.
	// +optional
	Status InstanceStatus `json:"status,omitempty"`
}

// InstanceList is a list of Instances.
//
// +kubebuilder:object:root=true
type InstanceList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Instance `json:"items"`
}

// InstanceSpec is what is wanted.
type InstanceSpec struct {
	// OperatorVersion is what to run; its namespace is the Instance's by default.
	// +optional
	OperatorVersion ObjectReference `json:"operatorVersion,omitempty"`
	// Parameters are its settings, by name.
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`
	// ParametersFrom are settings whose values stand in Secrets of the Instance's namespace. They are
	// read as the Instance's account, which it needs then, and stand neither in the spec nor in
	// the status. A value that changes there is a change of the parameter.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	ParametersFrom []ParameterSource `json:"parametersFrom,omitempty"`
	// PlanExecution requests a plan.
	// +optional
	PlanExecution PlanExecution `json:"planExecution,omitzero"`
	// ServiceAccountName is the ServiceAccount of the Instance's namespace as which its plans
	// read and write objects; by default that of the manager's --default-service-account, or the
	// manager itself. Who may edit the Instance acts with the rights of the account.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// Drift is what happens to objects that other clients have changed or deleted: Report, the
	// default, says so, and Correct also applies them again, as their plan did. What holds data is
	// not created again without the permission of its template.
	// +optional
	Drift DriftPolicy `json:"drift,omitempty"`
}

// ParameterSource is where the value of a parameter stands.
type ParameterSource struct {
	// Name is that of the parameter.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// SecretKeyRef is a key of a Secret in the Instance's namespace.
	SecretKeyRef SecretKeyReference `json:"secretKeyRef"`
}

// SecretKeyReference is a key of a Secret.
type SecretKeyReference struct {
	// Name is that of the Secret.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
	// Key is the key.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key"`
}

// DriftPolicy is what happens to objects that other clients have changed or deleted.
//
// +kubebuilder:validation:Enum=Report;Correct
type DriftPolicy string

// The policies.
const (
	DriftReport  DriftPolicy = "Report"
	DriftCorrect DriftPolicy = "Correct"
)

// PlanExecution requests a plan. It is cleared when the plan has ended.
type PlanExecution struct {
	// PlanName is the plan to run.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PlanName string `json:"planName,omitempty"`
	// UID distinguishes one request from the next; it is set if it is empty.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=253
	UID types.UID `json:"uid,omitempty"`
	// Status is not used; KUDO kept the state of the plan here.
	// +optional
	Status ExecutionStatus `json:"status,omitempty"`
}

// ExecutionStatus is the state of a plan, a phase or a step.
type ExecutionStatus string

// The states. Running are PENDING, IN_PROGRESS and ERROR; ended are COMPLETE and
// FATAL_ERROR.
const (
	// NeverRun: it was never needed or requested.
	NeverRun ExecutionStatus = "NEVER_RUN"
	// Pending: it will run.
	Pending ExecutionStatus = "PENDING"
	// InProgress: it runs.
	InProgress ExecutionStatus = "IN_PROGRESS"
	// Error: something failed and is retried.
	Error ExecutionStatus = "ERROR"
	// Complete: all of it is done.
	Complete ExecutionStatus = "COMPLETE"
	// FatalError: it failed or was abandoned, and is not retried automatically.
	FatalError ExecutionStatus = "FATAL_ERROR"
)

// IsRunning is true of what has not ended.
func (s ExecutionStatus) IsRunning() bool { return s == Pending || s == InProgress || s == Error }

// IsTerminal is true of what has ended.
func (s ExecutionStatus) IsTerminal() bool { return s == Complete || s == FatalError }
