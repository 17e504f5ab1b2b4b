package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ProxyAssemblage represents on the hub the Assemblage of the same name and
// namespace on another cluster. Its controller writes that Assemblage, and copies
// back its status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={spillway,fleet}
// +kubebuilder:printcolumn:name=Cluster,type=string,JSONPath=`.spec.clusterRef.name`
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].message`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type ProxyAssemblage struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is assigned to which cluster.
	Spec ProxyAssemblageSpec `json:"spec"`
	// Status is the state of what is assigned.
	// +optional
	Status AssemblageStatus `json:"status,omitempty"`
}

// ProxyAssemblageList is a list of ProxyAssemblages.
//
// +kubebuilder:object:root=true
type ProxyAssemblageList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ProxyAssemblage `json:"items"`
}

// ProxyAssemblageSpec is what is assigned to which cluster.
type ProxyAssemblageSpec struct {
	// KubeconfigRef names the Secret with the kubeconfig of the cluster, in its key
	// "value".
	KubeconfigRef LocalReference `json:"kubeconfigRef"`
	// ClusterRef is the cluster. Default: the name of the Secret without
	// "-kubeconfig".
	// +optional
	ClusterRef *ClusterReference `json:"clusterRef,omitempty"`
	// Assemblage is what is assigned.
	// +optional
	Assemblage ProxiedAssemblage `json:"assemblage,omitempty"`
}

// ClusterReference is a cluster in the same namespace.
type ClusterReference struct {
	// APIVersion and Kind are those of the object that represents it: a Cluster of
	// Cluster API, or the Secret with its kubeconfig.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// +optional
	Kind string `json:"kind,omitempty"`
	// Name is that of the cluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
}

// ProxiedAssemblage is an AssemblageSpec whose syncs may have bindings to what is
// on the hub.
type ProxiedAssemblage struct {
	// Syncs are what is to be fetched and applied, each by the name of its module.
	// Several clients may write here, each its own entries, by server-side apply.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=512
	Syncs []ProxySync `json:"syncs,omitempty"`
}

// ProxySync is a sync of an Assemblage, with bindings to what is on the hub. These
// are evaluated before it is sent.
//
// +kubebuilder:validation:XValidation:rule="!has(self.bindings) || size(self.bindings) <= 64",message="bindings has at most 64 items"
type ProxySync struct {
	NamedSync `json:",inline"`
	// ControlPlaneBindings are evaluated on the hub.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ControlPlaneBindings []Binding `json:"controlPlaneBindings,omitempty"`
}

// RemoteAssemblage is what the hub itself applies to a cluster. Its controller
// creates a Kustomization or HelmRelease of Flux on the hub for each sync, with the
// kubeconfig of the cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={spillway,fleet}
// +kubebuilder:printcolumn:name=Cluster,type=string,JSONPath=`.spec.clusterRef.name`
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].message`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type RemoteAssemblage struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is assigned to which cluster.
	Spec RemoteAssemblageSpec `json:"spec"`
	// Status is the state of what is assigned.
	// +optional
	Status AssemblageStatus `json:"status,omitempty"`
}

// RemoteAssemblageList is a list of RemoteAssemblages.
//
// +kubebuilder:object:root=true
type RemoteAssemblageList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []RemoteAssemblage `json:"items"`
}

// RemoteAssemblageSpec is what is assigned to which cluster.
type RemoteAssemblageSpec struct {
	// KubeconfigRef names the Secret with the kubeconfig of the cluster, in its key
	// "value".
	KubeconfigRef LocalReference `json:"kubeconfigRef"`
	// ClusterRef is the cluster. Default: the name of the Secret without
	// "-kubeconfig".
	// +optional
	ClusterRef *ClusterReference `json:"clusterRef,omitempty"`
	// Syncs are what is to be applied, each by the name of its module. Several
	// clients may write here, each its own entries, by server-side apply.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=512
	Syncs []RemoteSync `json:"syncs,omitempty"`
}

// RemoteSync is a sync that the hub applies to another cluster.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.source) && has(self.sourceRef))",message="at most one of source and sourceRef may be set"
// +kubebuilder:validation:XValidation:rule="has(self.source) || has(self.sourceRef) || has(self.hold)",message="one of source and sourceRef must be set"
type RemoteSync struct {
	Assignment  `json:",inline"`
	SyncOptions `json:",inline"`
	// ControlPlaneBindings are evaluated on the hub.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ControlPlaneBindings []Binding `json:"controlPlaneBindings,omitempty"`
	// Source is where to fetch it. All clusters at one revision of a module share
	// one source on the hub, which belongs to that revision.
	// +optional
	Source *Source `json:"source,omitempty"`
	// SourceRef is a source of Flux in the same namespace that another manager keeps.
	// +optional
	SourceRef *SourceReference `json:"sourceRef,omitempty"`
	// Package is how to apply what the source has. Default: a chart of a Helm
	// repository with Helm, all else with kustomize, at the root of the source.
	// +optional
	Package *Package `json:"package,omitempty"`
}

// SourceReference is a source of Flux in the same namespace.
type SourceReference struct {
	// APIVersion is that of the source.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind is GitRepository, OCIRepository or Bucket.
	// +kubebuilder:validation:Enum=GitRepository;OCIRepository;Bucket
	Kind string `json:"kind"`
	// Name is that of the source.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
}
