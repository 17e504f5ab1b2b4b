package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ClusterBudget is how many clusters several modules of its namespace may update at a time, together, in
// addition to the budget that each of them has. A module with the strategy External does not keep to it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cbudget,categories={all,spillway,fleet}
// +kubebuilder:printcolumn:name=Max-Clusters,type=integer,JSONPath=`.spec.maxClusters`
// +kubebuilder:printcolumn:name=Per,type=string,JSONPath=`.spec.groupBy.labelKey`
// +kubebuilder:printcolumn:name=Max-Modules,type=integer,JSONPath=`.spec.maxModulesPerCluster`
// +kubebuilder:printcolumn:name=Updating,type=string,JSONPath=`.status.modules[*].clusters[*].name`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterBudget struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is which modules share which budget.
	Spec ClusterBudgetSpec `json:"spec"`
	// Status is which modules are updating which clusters. Only the manager writes it.
	// +optional
	Status ClusterBudgetStatus `json:"status,omitempty"`
}

// ClusterBudgetList is a list of ClusterBudgets.
//
// +kubebuilder:object:root=true
type ClusterBudgetList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterBudget `json:"items"`
}

// ClusterBudgetSpec is which modules share which budget.
//
// +kubebuilder:validation:XValidation:rule="has(self.maxClusters) || has(self.maxModulesPerCluster)",message="one of maxClusters and maxModulesPerCluster must be set"
// +kubebuilder:validation:XValidation:rule="!has(self.groupBy) || has(self.maxClusters)",message="groupBy requires maxClusters, which is the budget of each group"
type ClusterBudgetSpec struct {
	// Modules finds the Modules and BootstrapModules that share the budget, by their labels. Default: all
	// of the namespace.
	// +optional
	Modules *metav1.LabelSelector `json:"modules,omitempty"`
	// Clusters finds the clusters of which there is a budget, by their labels. Default: all.
	// +optional
	Clusters *metav1.LabelSelector `json:"clusters,omitempty"`
	// GroupBy divides them into groups, each with a budget of its own.
	// +optional
	GroupBy *GroupBy `json:"groupBy,omitempty"`
	// MaxClusters is how many clusters of a group may be updating at a time. A cluster counts from when a module may
	// assign it a revision until that has become ready there for minReadySeconds of the module, or what is removed is
	// gone; also while it has failed, unless maxFailures of the module tolerates that.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxClusters *int32 `json:"maxClusters,omitempty"`
	// MaxModulesPerCluster is how many modules may be updating on a cluster at a time. One that a module
	// depends on may be updated together with it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxModulesPerCluster *int32 `json:"maxModulesPerCluster,omitempty"`
}

// GroupBy divides clusters into groups.
type GroupBy struct {
	// LabelKey is a label of clusters, such as "topology.kubernetes.io/region". Each of its values is a group, and so are the
	// clusters without it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	LabelKey string `json:"labelKey"`
}

// ClusterBudgetStatus is which modules are updating which clusters.
type ClusterBudgetStatus struct {
	// Modules are those that share the budget. While one of them is missing, or has noted its clusters for another
	// generation, no other may begin to update a cluster.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	Modules []BudgetModule `json:"modules,omitempty"`
}

// BudgetModule is a module that shares a budget.
type BudgetModule struct {
	// Kind is Module or BootstrapModule.
	Kind string `json:"kind"`
	// Name is that of the module.
	Name string `json:"name"`
	// ObservedGeneration is the generation of the budget for which the module has noted its clusters.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// DependsOn are the modules that it waits for on each cluster.
	// +optional
	// +listType=atomic
	DependsOn []string `json:"dependsOn,omitempty"`
	// Clusters are those that it is updating, or may be at any moment.
	// +optional
	// +listType=map
	// +listMapKey=name
	Clusters []BudgetCluster `json:"clusters,omitempty"`
}

// BudgetCluster is a cluster that a module is updating, or may be at any moment.
type BudgetCluster struct {
	// Name is that of the cluster.
	Name string `json:"name"`
	// Failed is true once the module has failed there.
	// +optional
	Failed bool `json:"failed,omitempty"`
	// UID, Generation and Fence are those of its assemblage, as for a move of the module: the module may write
	// to one that is the same. ResourceVersion is the one at which they were read.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Fence string `json:"fence,omitempty"`
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
}
