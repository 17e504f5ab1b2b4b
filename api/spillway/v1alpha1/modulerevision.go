package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
)

// ModuleRevision is what a module stood for at one time. It does not change, so
// that a rollout can go back to it. Its name is that of the module and a hash of
// what it says.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mrev,categories={spillway,fleet}
// +kubebuilder:printcolumn:name=Kind,type=string,JSONPath=`.spec.moduleRef.kind`,priority=1
// +kubebuilder:printcolumn:name=Module,type=string,JSONPath=`.spec.moduleRef.name`
// +kubebuilder:printcolumn:name=Number,type=integer,JSONPath=`.spec.number`
// +kubebuilder:printcolumn:name=Resolved,type=string,JSONPath=`.status.resolved`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type ModuleRevision struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the module stood for.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a ModuleRevision does not change; change its module"
	Spec ModuleRevisionSpec `json:"spec"`
	// Status is what was found out about it.
	// +optional
	Status ModuleRevisionStatus `json:"status,omitempty"`
}

// ModuleRevisionList is a list of ModuleRevisions.
//
// +kubebuilder:object:root=true
type ModuleRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ModuleRevision `json:"items"`
}

// ModuleRevisionSpec is what a module stood for.
type ModuleRevisionSpec struct {
	// ModuleRef is the module.
	ModuleRef ModuleReference `json:"moduleRef"`
	// Number counts the revisions of the module.
	// +kubebuilder:validation:Minimum=1
	Number int64 `json:"number"`
	// Template is what it stood for.
	Template fleet.TemplateSpec `json:"template"`
}

// ModuleReference is a module in the same namespace.
type ModuleReference struct {
	// Kind is Module or BootstrapModule.
	// +kubebuilder:validation:Enum=Module;BootstrapModule
	Kind string `json:"kind"`
	// Name is that of the module.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ModuleRevisionStatus is what was found out about a revision.
type ModuleRevisionStatus struct {
	// Resolved is the commit or the digest that its tag stood for on the first
	// cluster that ran it. All others get that, wherever the tag may have moved.
	// +optional
	Resolved string `json:"resolved,omitempty"`
}
