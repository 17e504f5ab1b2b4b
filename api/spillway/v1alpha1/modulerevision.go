package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
)

// ModuleRevision is the content of a module at one time. It does not change, so that
// a rollout can go back to it. Its name consists of the name of the module and a
// hash of the content.
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

	// Spec is the content of the module.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of a ModuleRevision is immutable; change its module"
	Spec ModuleRevisionSpec `json:"spec"`
	// Status has the commit or digest of its tag, once it is known.
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

// ModuleRevisionSpec is the content of a module.
type ModuleRevisionSpec struct {
	// ModuleRef is the module.
	ModuleRef ModuleReference `json:"moduleRef"`
	// Number counts the revisions of the module.
	// +kubebuilder:validation:Minimum=1
	Number int64 `json:"number"`
	// Template is the content.
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

// ModuleRevisionStatus has the commit or digest of a tag, once it is known.
type ModuleRevisionStatus struct {
	// Resolved is the commit or the digest that its tag had on the first cluster
	// that ran it. All other clusters get that, even if the tag has moved.
	// +optional
	Resolved string `json:"resolved,omitempty"`
}
