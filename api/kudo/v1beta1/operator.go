package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Operator is an application that can be installed; its OperatorVersions say how.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories={kudo,spillway}
// +kubebuilder:printcolumn:name=Description,type=string,JSONPath=`.spec.description`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type Operator struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec describes the application.
	// +optional
	Spec OperatorSpec `json:"spec,omitempty"`
	// Status has no fields; manifests of KUDO contain it.
	// +optional
	Status OperatorStatus `json:"status,omitempty"`
}

// OperatorList is a list of Operators.
//
// +kubebuilder:object:root=true
type OperatorList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Operator `json:"items"`
}

// OperatorSpec describes an application.
type OperatorSpec struct {
	// Description is what it is.
	// +optional
	Description string `json:"description,omitempty"`
	// KudoVersion is the version of KUDO that the package was made for.
	// +optional
	KudoVersion string `json:"kudoVersion,omitempty"`
	// KubernetesVersion is the oldest one that it runs on.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Maintainers are the people to ask.
	// +optional
	// +listType=atomic
	Maintainers []Maintainer `json:"maintainers,omitempty"`
	// URL is where to read about it.
	// +optional
	URL string `json:"url,omitempty"`
	// NamespaceManifest is the template of the namespace that is created with it.
	// +optional
	NamespaceManifest string `json:"namespaceManifest,omitempty"`
}

// Maintainer is a person who maintains a package.
type Maintainer struct {
	// +optional
	Name string `json:"name,omitempty"`
	// +optional
	Email string `json:"email,omitempty"`
}

// OperatorStatus has no fields.
type OperatorStatus struct{}
