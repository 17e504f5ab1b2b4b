package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Assemblage is what is assigned to the cluster that it is in. Its controller
// evaluates the bindings, and creates a source and a Kustomization or HelmRelease of
// Flux for each sync.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={all,spillway,fleet}
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].message`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type Assemblage struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is assigned.
	// +optional
	Spec AssemblageSpec `json:"spec,omitempty"`
	// Status is the state of what is assigned.
	// +optional
	Status AssemblageStatus `json:"status,omitempty"`
}

// AssemblageList is a list of Assemblages.
//
// +kubebuilder:object:root=true
type AssemblageList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Assemblage `json:"items"`
}

// AssemblageSpec is what is assigned.
type AssemblageSpec struct {
	// Syncs are what is to be fetched and applied, each by the name of its module.
	// Several clients may write here, each its own entries, by server-side apply.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=512
	Syncs []NamedSync `json:"syncs,omitempty"`
}

// Assignment is what every sync of an assemblage has.
type Assignment struct {
	// Name is that of the module, and unique in the cluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
	// Revision is the name of the ModuleRevision that is assigned. The status names
	// the revision that it is about, so that success at an older one does not count
	// as success at this one.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision,omitempty"`
	// Overrides are the names of those of the revision that are merged into the sync, by the
	// labels that the cluster had when it was assigned.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Overrides []string `json:"overrides,omitempty"`
	// AssignedAt is when the revision was assigned. It distinguishes one assignment
	// of a revision from a later one of the same revision.
	// +optional
	AssignedAt *metav1.MicroTime `json:"assignedAt,omitempty"`
	// Unready is true if the cluster was not ready before the revision was assigned, or had
	// nothing of the module, so that it is no evidence against a revision if the cluster does
	// not become ready.
	// +optional
	Unready bool `json:"unready,omitempty"`
	// DeletionPolicy says what happens to what runs when the sync is removed.
	// Default Delete.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
	// Hold pins the cluster: this sync stays at its revision, and the rollout
	// continues on the others. A sync that has nothing else is not assigned.
	// +optional
	Hold *Hold `json:"hold,omitempty"`
	// GivenUp is the revision that the module gave up last, as a copy that lies with the
	// clusters: a hub that is rebuilt does not send it again.
	// +optional
	GivenUp *GivenUp `json:"givenUp,omitempty"`
}

// GivenUp is a revision that was given up: which cluster has failed with it, and how.
type GivenUp struct {
	// Revision is the name of the ModuleRevision.
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision"`
	// At is when it was given up.
	At metav1.MicroTime `json:"at"`
	// Cluster is a cluster that has failed with it, empty if none has: a gate was refused.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Cluster string `json:"cluster,omitempty"`
	// Gate is the RolloutGate that was refused.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Gate string `json:"gate,omitempty"`
	// Message says why.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// Hold is the request of a user to keep a sync as it is.
type Hold struct {
	// Reason is why the user requests it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// By is the name of the user.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	By string `json:"by,omitempty"`
	// Since is when it was requested.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// NamedSync is a sync that is assigned to a cluster.
//
// +kubebuilder:validation:XValidation:rule="has(self.source) || has(self.hold) || has(self.found)",message="source must be set"
type NamedSync struct {
	Assignment `json:",inline"`
	Sync       `json:",inline"`
	// Found is true of a sync that the hub has found on the cluster and taken over as it is:
	// the revision is all that is known of it.
	// +optional
	Found bool `json:"found,omitempty"`
}

// State is the state of a sync.
// +kubebuilder:validation:Enum=succeeded;failed;updating;waiting;unreachable
type State string

// The states.
const (
	// StateSucceeded: it was applied, and what was applied is healthy.
	StateSucceeded State = "succeeded"
	// StateFailed: it failed, and waiting does not help.
	StateFailed State = "failed"
	// StateUpdating: it is being applied.
	StateUpdating State = "updating"
	// StateWaiting: something that it needs does not exist yet.
	StateWaiting State = "waiting"
	// StateUnreachable: the cluster does not answer.
	StateUnreachable State = "unreachable"
)

// AssemblageStatus is the state of what is assigned.
type AssemblageStatus struct {
	// ObservedGeneration is the generation that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Syncs has the state of each sync.
	// +optional
	// +listType=map
	// +listMapKey=name
	Syncs []SyncStatus `json:"syncs,omitempty"`
	// Adopted says which content of the cluster was taken over from an earlier
	// ProxyAssemblage of the same hub, namespace, name and cluster: by its UID and a hash.
	// +optional
	Adopted string `json:"adopted,omitempty"`
	// Found is what the hub has found on the cluster before anything was sent there. Absent
	// until it has looked, and once the cluster has what is assigned.
	// +optional
	Found *Found `json:"found,omitempty"`
}

// Found is what a hub finds on a cluster to which it has not sent anything.
type Found struct {
	// Silent is true if the cluster does not answer, so that nothing is known.
	// +optional
	Silent bool `json:"silent,omitempty"`
	// Syncs are those that an earlier ProxyAssemblage of the same hub, namespace, name and
	// cluster has sent.
	// +optional
	// +listType=map
	// +listMapKey=name
	Syncs []FoundSync `json:"syncs,omitempty"`
}

// FoundSync is a sync that is found on a cluster.
type FoundSync struct {
	// Name is that of the module.
	Name string `json:"name"`
	// Revision, Overrides, AssignedAt and Unready are those of the sync.
	// +optional
	Revision string `json:"revision,omitempty"`
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Overrides []string `json:"overrides,omitempty"`
	// +optional
	AssignedAt *metav1.MicroTime `json:"assignedAt,omitempty"`
	// +optional
	Unready bool `json:"unready,omitempty"`
	// GivenUp is the copy of what the module gave up.
	// +optional
	GivenUp *GivenUp `json:"givenUp,omitempty"`
}

// SyncStatus is the state of a sync. It is about one assignment: a revision, and
// when it was assigned.
type SyncStatus struct {
	// Name is that of the sync.
	Name string `json:"name"`
	// Revision and AssignedAt are those of the sync that the state is of, copied
	// from there.
	// +optional
	Revision string `json:"revision,omitempty"`
	// +optional
	AssignedAt *metav1.MicroTime `json:"assignedAt,omitempty"`
	// State is the state of the sync.
	State State `json:"state"`
	// Reason is a word for why.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message says why.
	// +optional
	Message string `json:"message,omitempty"`
	// ObservedGeneration is the generation of the assemblage at which the sync was
	// observed.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// LastTransitionTime is since when it has been in this state, measured
	// separately for each assignment.
	// +optional
	LastTransitionTime *metav1.MicroTime `json:"lastTransitionTime,omitempty"`
	// LastSucceededRevision is the last revision at which it has succeeded, kept
	// while others are rolled out; empty if there is none.
	// +optional
	LastSucceededRevision string `json:"lastSucceededRevision,omitempty"`
	// LastSucceededAssignedAt is the AssignedAt of the assignment that has succeeded last: of
	// one revision there may be several.
	// +optional
	LastSucceededAssignedAt *metav1.MicroTime `json:"lastSucceededAssignedAt,omitempty"`
	// Resolved is the commit or the digest that was applied last.
	// +optional
	Resolved string `json:"resolved,omitempty"`
	// FailedAt is when Flux failed first to apply it, in a way that may pass, while it has not
	// failed again: it has failed once it fails a second time in a row.
	// +optional
	FailedAt *metav1.Time `json:"failedAt,omitempty"`
	// DeletionPolicy is Orphan once the Kustomization has that setting: what runs is
	// then kept if the sync is removed. Empty while that is not so, or not known.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}
