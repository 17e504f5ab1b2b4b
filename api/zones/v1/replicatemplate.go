package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ReplicaTemplate is a number of replicas that StatefulSets mirror. It has a scale
// subresource, so that a HorizontalPodAutoscaler can set it for all zones.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.spec.labelSelector
// +kubebuilder:resource:path=replicatemplates
// +kubebuilder:printcolumn:name=Desired,type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name=Current,type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type ReplicaTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted.
	// +optional
	// +kubebuilder:default={}
	Spec ReplicaTemplateSpec `json:"spec,omitempty"`
	// Status is what there is.
	// +optional
	Status ReplicaTemplateStatus `json:"status,omitempty"`
}

// ReplicaTemplateSpec is what is wanted.
type ReplicaTemplateSpec struct {
	// Replicas is how many are wanted.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`
	// LabelSelector finds the Pods, in the form "name=value". A
	// HorizontalPodAutoscaler asks for one, whether it uses it or not.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
}

// ReplicaTemplateStatus is what there is.
type ReplicaTemplateStatus struct {
	// Replicas is how many the StatefulSets that mirror it have. Spillway writes it.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
}

// ReplicaTemplateList is a list of ReplicaTemplates.
//
// +kubebuilder:object:root=true
type ReplicaTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ReplicaTemplate `json:"items"`
}
