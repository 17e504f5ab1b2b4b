package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Module is what runs, at one exact version, on all clusters that it selects. Its
// controller decides which cluster is assigned a new version, and when. Flux on each
// cluster fetches and applies it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={all,spillway,fleet}
// +kubebuilder:printcolumn:name=Phase,type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name=Complete,type=integer,JSONPath=`.status.rollout.units.complete`
// +kubebuilder:printcolumn:name=Total,type=integer,JSONPath=`.status.rollout.units.total`
// +kubebuilder:printcolumn:name=Waiting-For,type=string,JSONPath=`.status.waitingFor`
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`,priority=1
// +kubebuilder:printcolumn:name=Stage,type=string,JSONPath=`.status.stage`,priority=1
// +kubebuilder:printcolumn:name=Failed,type=integer,JSONPath=`.status.summary.failed`,priority=1
// +kubebuilder:printcolumn:name=Target,type=string,JSONPath=`.status.targetRevision`,priority=1
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 200",message="the name of a module is at most 200 characters long"
type Module struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what runs on which clusters, and how a change is rolled out.
	Spec ModuleSpec `json:"spec"`
	// Status is the progress of the rollout.
	// +optional
	Status ModuleStatus `json:"status,omitempty"`
}

// ModuleList is a list of Modules.
//
// +kubebuilder:object:root=true
type ModuleList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Module `json:"items"`
}

// BootstrapModule is a Module that the hub applies to the clusters itself, for what
// must exist before a cluster can do so, such as Flux.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={all,spillway,fleet}
// +kubebuilder:printcolumn:name=Phase,type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name=Complete,type=integer,JSONPath=`.status.rollout.units.complete`
// +kubebuilder:printcolumn:name=Total,type=integer,JSONPath=`.status.rollout.units.total`
// +kubebuilder:printcolumn:name=Waiting-For,type=string,JSONPath=`.status.waitingFor`
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`,priority=1
// +kubebuilder:printcolumn:name=Stage,type=string,JSONPath=`.status.stage`,priority=1
// +kubebuilder:printcolumn:name=Failed,type=integer,JSONPath=`.status.summary.failed`,priority=1
// +kubebuilder:printcolumn:name=Target,type=string,JSONPath=`.status.targetRevision`,priority=1
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 200",message="the name of a module is at most 200 characters long"
// +kubebuilder:validation:XValidation:rule="!(has(self.spec.sync) && has(self.spec.sync.bindings)) && !(has(self.spec.template) && has(self.spec.template.spec.sync.bindings))",message="nothing evaluates sync.bindings of a BootstrapModule; use controlPlaneBindings"
type BootstrapModule struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what runs on which clusters, and how a change is rolled out.
	Spec ModuleSpec `json:"spec"`
	// Status is the progress of the rollout.
	// +optional
	Status ModuleStatus `json:"status,omitempty"`
}

// BootstrapModuleList is a list of BootstrapModules.
//
// +kubebuilder:object:root=true
type BootstrapModuleList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BootstrapModule `json:"items"`
}

// ModuleSpec is what runs on which clusters, and how a change is rolled out. What
// runs is in template.spec, or, in older manifests, in sync.
//
// +kubebuilder:validation:XValidation:rule="has(self.template) != has(self.sync)",message="exactly one of template and sync must be set"
// +kubebuilder:validation:XValidation:rule="!(has(self.template) && has(self.controlPlaneBindings))",message="with a template, controlPlaneBindings belong in template.spec"
type ModuleSpec struct {
	// Selector finds the clusters by their labels, in the namespace of the module.
	// An empty selector selects all clusters; without a selector none is selected.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// AllowEmpty says that the module may be for no cluster: it is ready then. Otherwise
	// it is not ready while no cluster that the selector matches can be assigned anything.
	// +optional
	AllowEmpty bool `json:"allowEmpty,omitempty"`
	// Suspend pauses the rollout: no cluster is assigned anything new. Clusters that
	// were assigned a revision already complete their update.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// RevisionHistoryLimit is how many ModuleRevisions are kept besides those in
	// use. Default 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// TargetRevision is the name of a ModuleRevision to roll out instead of the
	// template: to go back, or to stay.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	TargetRevision string `json:"targetRevision,omitempty"`
	// DeletionPolicy says what happens to what runs on a cluster that is no longer
	// selected, or when the module is deleted. Default Delete.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
	// Strategy is how a change is rolled out. Default Replace.
	// +optional
	Strategy Strategy `json:"strategy,omitempty"`
	// Rollout has the settings of the strategy.
	// +optional
	Rollout *Rollout `json:"rollout,omitempty"`
	// Template is what is to run.
	// +optional
	Template *ModuleTemplate `json:"template,omitempty"`
	// ControlPlaneBindings are evaluated on the hub, for each cluster. Set them here
	// only with sync; with a template they belong to template.spec.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ControlPlaneBindings []Binding `json:"controlPlaneBindings,omitempty"`
	// Sync is what is to run, where there is no template.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.source)",message="source must be set"
	// +kubebuilder:validation:XValidation:rule="!has(self.bindings) || size(self.bindings) <= 64",message="bindings has at most 64 items"
	Sync *Sync `json:"sync,omitempty"`
}

// Strategy is how a change is rolled out.
// +kubebuilder:validation:Enum=Replace;Incremental;External
type Strategy string

// The strategies.
const (
	// Replace assigns the new revision to all clusters at the same time.
	Replace Strategy = "Replace"
	// Incremental assigns it stage after stage, within the budget of each.
	Incremental Strategy = "Incremental"
	// External assigns nothing: it makes revisions and gates, and reports.
	// Another client writes the assemblages.
	External Strategy = "External"
)

// DeletionPolicy says what happens to what runs on a cluster.
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

// The deletion policies.
const (
	// Delete removes it.
	Delete DeletionPolicy = "Delete"
	// Orphan keeps it.
	Orphan DeletionPolicy = "Orphan"
)

// ModuleTemplate is what is to run.
type ModuleTemplate struct {
	// Spec is what is to run.
	Spec TemplateSpec `json:"spec"`
}

// TemplateSpec is what is to run. A [ModuleRevision] is one that does not change.
type TemplateSpec struct {
	// ControlPlaneBindings are evaluated on the hub, for each cluster.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ControlPlaneBindings []Binding `json:"controlPlaneBindings,omitempty"`
	// Sync is what to fetch and apply.
	// +kubebuilder:validation:XValidation:rule="has(self.source)",message="source must be set"
	// +kubebuilder:validation:XValidation:rule="!has(self.bindings) || size(self.bindings) <= 64",message="bindings has at most 64 items"
	Sync Sync `json:"sync"`
	// Overrides change that on clusters with some labels. Those that match a cluster are
	// merged in this order.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Overrides []Override `json:"overrides,omitempty"`
}

// Override changes what runs on the clusters with some labels.
//
// +kubebuilder:validation:XValidation:rule="has(self.controlPlaneBindings) || has(self.patches) || has(self.values)",message="one of controlPlaneBindings, patches and values must be set"
// +kubebuilder:validation:XValidation:rule="!(has(self.patches) && has(self.values))",message="at most one of patches and values may be set: patches are for kustomize, values for Helm"
type Override struct {
	// Name identifies the override. Each cluster is recorded with the names of those that it has.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Clusters finds the clusters by their labels, among those of the module. An empty
	// selector finds all of them.
	Clusters metav1.LabelSelector `json:"clusters"`
	// ControlPlaneBindings are added to those of the template. One takes the place of
	// another of its name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	ControlPlaneBindings []Binding `json:"controlPlaneBindings,omitempty"`
	// Patches are applied with kustomize, after those of the template.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Patches []Patch `json:"patches,omitempty"`
	// Values are merged into those of the chart: an object into an object. Anything else replaces
	// the value of the same name.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *runtime.RawExtension `json:"values,omitempty"`
}

// Patch is a patch of kustomize, as a Kustomization of Flux has it.
type Patch struct {
	// Patch is a strategic merge patch, or a JSON patch (RFC 6902).
	// +kubebuilder:validation:MinLength=1
	Patch string `json:"patch"`
	// Target finds the objects that it is applied to. A strategic merge patch without one is
	// applied to the object that it names.
	// +optional
	Target *PatchTarget `json:"target,omitempty"`
}

// PatchTarget finds objects of a package.
type PatchTarget struct {
	// Group, Version and Kind are those of the objects, any if they are not set.
	// +optional
	Group string `json:"group,omitempty"`
	// +optional
	Version string `json:"version,omitempty"`
	// +optional
	Kind string `json:"kind,omitempty"`
	// Namespace and Name are theirs, as regular expressions.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// +optional
	Name string `json:"name,omitempty"`
	// LabelSelector and AnnotationSelector find them by their labels and annotations: "app=shop".
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
	// +optional
	AnnotationSelector string `json:"annotationSelector,omitempty"`
}

// OnFailure is what happens once more clusters have failed than maxFailures tolerates.
// +kubebuilder:validation:Enum=Pause;Continue;Rollback
type OnFailure string

// The answers to failure.
const (
	// Pause assigns nothing more until a user fixes it or another revision comes.
	Pause OnFailure = "Pause"
	// Continue continues as if nothing had failed.
	Continue OnFailure = "Continue"
	// Rollback goes back to the last revision that reached all clusters.
	Rollback OnFailure = "Rollback"
)

// UnmatchedClusters says what happens to clusters that belong to no stage.
// +kubebuilder:validation:Enum=Last;Exclude;Fail
type UnmatchedClusters string

// The answers to clusters that belong to no stage.
const (
	// UnmatchedLast makes them a stage of their own, after the others.
	UnmatchedLast UnmatchedClusters = "Last"
	// UnmatchedExclude leaves them as they are.
	UnmatchedExclude UnmatchedClusters = "Exclude"
	// UnmatchedFail stops the rollout until each belongs to one.
	UnmatchedFail UnmatchedClusters = "Fail"
)

// Rollout is how a revision is rolled out to the clusters. The budgets and the
// stages are for the strategy Incremental; with Replace, all clusters are one stage
// without a budget.
//
// +kubebuilder:validation:XValidation:rule="!has(self.unmatchedClusters) || has(self.stages)",message="unmatchedClusters requires stages"
type Rollout struct {
	// MaxUnreadyClusters is how many clusters of a stage may be unready at a time,
	// updating ones included: a number, or a percentage of the stage, rounded down,
	// at least 1. Default 1.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : true",message="must be a number of at least 1, or a percentage from 1% to 100%"
	MaxUnreadyClusters *intstr.IntOrString `json:"maxUnreadyClusters,omitempty"`
	// MaxUnreadyTotal is how many clusters of the module may be unready at a time, of all
	// stages together and in addition to their own budgets: a number, or a percentage of
	// its clusters, rounded down, at least 1. Default: no such limit.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : true",message="must be a number of at least 1, or a percentage from 1% to 100%"
	MaxUnreadyTotal *intstr.IntOrString `json:"maxUnreadyTotal,omitempty"`
	// MaxFailures is how many clusters of a stage may fail before onFailure
	// applies: a number, or a percentage of the stage. Those take no place in
	// maxUnreadyClusters. Default 0.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([0-9]|[1-9][0-9]|100)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : true",message="must be a number of at least 0, or a percentage from 0% to 100%"
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`
	// MaxRemoved is how many clusters may lose the module without an approval, because
	// the selector no longer matches them: a number, or a percentage of the clusters that
	// have it, rounded down, at least 1 unless it is 0%. While there are more, none loses
	// it until a user approves their number. Default 10%.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([0-9]|[1-9][0-9]|100)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : true",message="must be a number of at least 0, or a percentage from 0% to 100%"
	MaxRemoved *intstr.IntOrString `json:"maxRemoved,omitempty"`
	// MinReadySeconds is how long a cluster must be ready, at this very revision,
	// before it counts as such.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
	// ProgressDeadlineSeconds is how long a cluster may take to become ready once
	// it was assigned, before it counts as failed. Default 600.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
	// OnFailure is what happens once more clusters have failed than maxFailures tolerates.
	// Default Pause.
	// +optional
	OnFailure OnFailure `json:"onFailure,omitempty"`
	// OrderBy is the order of the clusters within a stage.
	// +optional
	OrderBy *OrderBy `json:"orderBy,omitempty"`
	// UnmatchedClusters says what happens to clusters that belong to no stage.
	// Default Last.
	// +optional
	UnmatchedClusters UnmatchedClusters `json:"unmatchedClusters,omitempty"`
	// Windows are the times at which clusters may be assigned a new revision. At
	// any time, if there are none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Windows []Window `json:"windows,omitempty"`
	// Checks must hold on a cluster before it is assigned a revision. One on which a check does
	// not hold is skipped, and updated once it holds. A cluster that returns to the last revision
	// that reached all clusters is not checked.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Checks []ClusterCheck `json:"checks,omitempty"`
	// Stages follow one another. A cluster belongs to the first that selects it.
	// Without any, all clusters are one stage.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=31
	Stages []Stage `json:"stages,omitempty"`
}

// ClusterCheck is a condition of a cluster.
type ClusterCheck struct {
	// Name identifies the check.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Expression is the condition in CEL. The variable cluster has the fields name, labels,
	// version.major, version.minor and version.text of its Kubernetes, and apis, whose keys are the
	// API groups that it serves with their versions: "cert-manager.io/v1" in cluster.apis.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Expression string `json:"expression"`
	// Message says what a cluster needs. Default: the expression.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// OrderBy is the order of the clusters within a stage.
type OrderBy struct {
	// LabelKey is a label of the clusters whose value is a number; the lowest is the
	// first, those without one are the last. The order among equals is arbitrary but
	// fixed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	LabelKey string `json:"labelKey"`
}

// Window is a recurring period of time.
type Window struct {
	// Schedule is when it opens, as a cron expression of five fields.
	// +kubebuilder:validation:Pattern=`^(@(hourly|daily|midnight|weekly|monthly|yearly|annually)|[^@\s]\S*(\s+\S+){4})$`
	// +kubebuilder:validation:MaxLength=256
	Schedule string `json:"schedule"`
	// DurationSeconds is how long it stays open.
	// +kubebuilder:validation:Minimum=1
	DurationSeconds int32 `json:"durationSeconds"`
	// TimeZone is that of the schedule: "Europe/London". Default UTC.
	// +optional
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$`
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
}

// Stage is a set of clusters that are updated before those of later stages. What is
// not set here is as in the rollout.
type Stage struct {
	// Name identifies the stage.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Selector finds its clusters among those of the module that no earlier stage
	// has. Default: all of them.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Clusters is how many of these belong to it, the first by the order: a number,
	// or a percentage of all clusters of the module, rounded down, at least 1.
	// Default: all of them.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : true",message="must be a number of at least 1, or a percentage from 1% to 100%"
	Clusters *intstr.IntOrString `json:"clusters,omitempty"`
	// MaxUnreadyClusters is as in the rollout.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : true",message="must be a number of at least 1, or a percentage from 1% to 100%"
	MaxUnreadyClusters *intstr.IntOrString `json:"maxUnreadyClusters,omitempty"`
	// MaxFailures is as in the rollout.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([0-9]|[1-9][0-9]|100)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : true",message="must be a number of at least 0, or a percentage from 0% to 100%"
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`
	// MinEvidence is how many of its clusters must show that the revision is good, by becoming
	// ready with it, before the stage is complete: clusters that are suspended, do not answer or
	// were not ready before show nothing. Default 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinEvidence *int32 `json:"minEvidence,omitempty"`
	// AllowEmpty says that the stage needs no evidence: it may have no clusters, or none
	// that can show anything.
	// +optional
	AllowEmpty bool `json:"allowEmpty,omitempty"`
	// SoakSeconds is how long all of its clusters must stay ready before the next
	// stage begins.
	// +optional
	// +kubebuilder:validation:Minimum=0
	SoakSeconds int32 `json:"soakSeconds,omitempty"`
	// Gates are decisions, each in a RolloutGate. If a GateTemplate has the name of one,
	// Spillway measures it; otherwise a user or another client decides.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Gates []Gate `json:"gates,omitempty"`
}

// Gate is a decision that a rollout waits for.
type Gate struct {
	// Name is that of the decision: "approve", "acme.io/error-rate".
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?$`
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// When is Before the stage begins, After its clusters are ready and have soaked, or
	// During its rollout: then a refusal stops what has not been updated yet, and the stage
	// is complete once the gate has passed. Default After.
	// +optional
	When GateTime `json:"when,omitempty"`
	// OnRefusal is what happens if the gate is refused: Stop (default) stops the rollout,
	// Continue continues it, Rollback returns to the last revision that reached all clusters.
	// +optional
	OnRefusal GateRefusal `json:"onRefusal,omitempty"`
}

// GateRefusal is what happens if a gate is refused.
// +kubebuilder:validation:Enum=Stop;Continue;Rollback
type GateRefusal string

// The answers to a refusal.
const (
	RefusalStop     GateRefusal = "Stop"
	RefusalContinue GateRefusal = "Continue"
	RefusalRollback GateRefusal = "Rollback"
)

// GateTime is when a gate must pass.
// +kubebuilder:validation:Enum=Before;After;During
type GateTime string

// The times of a gate.
const (
	Before GateTime = "Before"
	After  GateTime = "After"
	During GateTime = "During"
)
