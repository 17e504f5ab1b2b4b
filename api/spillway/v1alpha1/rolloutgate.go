package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GatePassed is the condition of a RolloutGate in which a client reports its
// decision: True lets the rollout through, False stops it, Unknown or none makes it
// wait.
const GatePassed = "Passed"

// RolloutGate is a decision that a rollout waits for. A user or a program makes it,
// by the condition Passed of its status. Any client that may update
// rolloutgates/status may decide.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=gate,categories={spillway,fleet}
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
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of a RolloutGate is immutable"
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

// RolloutGateSpec is what is to be decided.
type RolloutGateSpec struct {
	// TargetRef is what rolls out.
	TargetRef TargetReference `json:"targetRef"`
	// Revision is what is rolled out. Another revision has gates of its own.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision"`
	// Stage is the stage of the rollout before or after which the gate must pass.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Stage string `json:"stage"`
	// Gate is the name of the decision: "approve", "acme.io/error-rate".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Gate string `json:"gate"`
	// When is Before the stage begins, or After it is healthy and has soaked.
	// +kubebuilder:validation:Enum=Before;After
	When string `json:"when"`
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
	Name string `json:"name"`
}

// RolloutGateStatus is what was decided.
type RolloutGateStatus struct {
	// Conditions are Passed, with the reason and the message of the client that decided.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
