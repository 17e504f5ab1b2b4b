package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ConfigPolicy says in which order, and how many at a time, the workloads of its
// namespace are rolled for a change of config. Each content of a ConfigMap or Secret is
// a release: the workloads that use it go stage after stage.
//
// A ConfigPolicy comes before all ClusterConfigPolicies. If several cover the same
// object and workload the one with the highest priority counts, and of equal ones the
// first by name. Without a policy, workloads are rolled as soon as their config changes.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cfp,categories={all,spillway}
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name=Phase,type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name=Releases,type=integer,JSONPath=`.status.underway`
// +kubebuilder:printcolumn:name=Waiting-For,type=string,JSONPath=`.status.waitingFor`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type ConfigPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the policy.
	// +optional
	Spec ConfigPolicySpec `json:"spec,omitempty"`
	// Status has the releases that are under way.
	// +optional
	Status ConfigPolicyStatus `json:"status,omitempty"`
}

// ConfigPolicyList is a list of ConfigPolicies.
//
// +kubebuilder:object:root=true
type ConfigPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ConfigPolicy `json:"items"`
}

// ClusterConfigPolicy is a ConfigPolicy for several namespaces. A release goes through
// its stages in each namespace separately, so that no namespace waits for another one,
// unless namespaceStages says so.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=ccfp,categories={spillway}
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name=Phase,type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name=Releases,type=integer,JSONPath=`.status.underway`
// +kubebuilder:printcolumn:name=Waiting-For,type=string,JSONPath=`.status.waitingFor`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterConfigPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the policy.
	// +optional
	Spec ClusterConfigPolicySpec `json:"spec,omitempty"`
	// Status has the releases that are under way.
	// +optional
	Status ConfigPolicyStatus `json:"status,omitempty"`
}

// ClusterConfigPolicyList is a list of ClusterConfigPolicies.
//
// +kubebuilder:object:root=true
type ClusterConfigPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterConfigPolicy `json:"items"`
}

// ClusterConfigPolicySpec is a policy, and the namespaces that it is for.
//
// +kubebuilder:validation:XValidation:rule="!has(self.stages) || self.stages.all(s, !has(s.gates))",message="gates are for ConfigPolicies: users of a namespace could decide those of a ClusterConfigPolicy"
// +kubebuilder:validation:XValidation:rule="!has(self.namespaceStages) || size(self.namespaceStages) == 0 || (has(self.objects) && size(self.objects) > 0)",message="namespaceStages are for objects that have the same content in several namespaces: name them in objects"
type ClusterConfigPolicySpec struct {
	// Namespaces are those of the workloads that it is for. Default: all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Namespaces []string `json:"namespaces,omitempty"`
	// NamespaceStages are sets of namespaces that follow one another: objects of one kind and
	// name with the same content are one release in all of them. A namespace gets it once all
	// namespaces of the stages before that use such an object have the same content, and their
	// workloads are ready with it and have soaked. Once the content has failed in one of the
	// namespaces, no other one gets it. A namespace belongs to the first stage that selects it,
	// and if none does to a last one. Each namespace goes through the stages of workloads for
	// itself. Set objects with it.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.filter(s, !has(s.namespaceSelector)).size() <= 1 && self.map(s, has(s.namespaceSelector) ? 0 : 1).isSorted()",message="only the last stage may be without namespaceSelector: it has the namespaces that are in no other stage"
	NamespaceStages []ConfigNamespaceStage `json:"namespaceStages,omitempty"`

	ConfigPolicySpec `json:",inline"`
}

// ConfigNamespaceStage is a set of namespaces that get a content before those of later stages.
//
// +kubebuilder:validation:XValidation:rule="!has(self.namespaceSelector) || has(self.namespaceSelector.matchLabels) && size(self.namespaceSelector.matchLabels) > 0 || has(self.namespaceSelector.matchExpressions) && size(self.namespaceSelector.matchExpressions) > 0",message="namespaceSelector must select by some label: an empty one would select all namespaces"
type ConfigNamespaceStage struct {
	// Name identifies the stage.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// NamespaceSelector finds its namespaces by their labels. Default, in the last stage: all
	// that are in no earlier one.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// Soak is how long all workloads of its namespaces must stay ready before the next stage
	// begins. Default: soak of the policy.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`
	Soak *metav1.Duration `json:"soak,omitempty"`
	// MinEvidence is how many workloads of its namespaces must show that the content is good, by
	// becoming ready with it, before the next stage begins: those without replicas or that were
	// not ready before show nothing. Default 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinEvidence *int32 `json:"minEvidence,omitempty"`
	// AllowEmpty says that the stage needs no evidence: it may have no namespaces, or none that
	// can show anything.
	// +optional
	AllowEmpty bool `json:"allowEmpty,omitempty"`
}

// ConfigPolicySpec is how a release of config is rolled out to the workloads that use it.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.track) && self.track && has(self.objects))",message="a workload is tracked with all its config: set objects in another policy than track"
type ConfigPolicySpec struct {
	// Selector finds the workloads by their labels. Default: all.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Objects are the ConfigMaps and Secrets whose releases it is for. Default: all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Objects []ConfigReference `json:"objects,omitempty"`
	// Priority decides between policies for the same object and workload: the highest
	// counts. Default 0.
	// +optional
	Priority int32 `json:"priority,omitempty"`
	// Stages follow one another: the next one begins once all workloads of the one before
	// are ready with the new content, and have soaked. Stages that take a number of
	// workloads are filled first. A workload that is in none of these belongs to the first
	// other stage that selects it, and if none does to a last one. Without any, all
	// workloads are one stage.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.map(s, has(s.workloads) ? 0 : 1).isSorted()",message="stages with workloads must come before the others"
	Stages []ConfigStage `json:"stages,omitempty"`
	// MaxUnavailable is how many workloads of a stage may be unavailable at a time because
	// they are rolled: a number, or a percentage of the stage, rounded down, at least 1. A
	// group of zones counts as one workload. Default: no limit.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : true",message="must be a number of at least 1, or a percentage from 1% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// MaxFailures is how many workloads of a stage may fail with the new content before
	// onFailure applies: a number, or a percentage of the stage. Those take no place in
	// maxUnavailable. Default 0.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([0-9]|[1-9][0-9]|100)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : true",message="must be a number of at least 0, or a percentage from 0% to 100%"
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`
	// Soak is how long all workloads of a stage must stay ready before the next one
	// begins: "5m".
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`
	Soak *metav1.Duration `json:"soak,omitempty"`
	// MaintenanceWindows are when workloads may be rolled for config. What has begun is
	// completed. Default: always.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	MaintenanceWindows []MaintenanceWindow `json:"maintenanceWindows,omitempty"`
	// OnFailure is what happens once more workloads have failed than maxFailures
	// tolerates. With Rollback, each workload that fails with the new content and keeps its
	// config also gets its previous config back; set pinConfig with it. Default Stop.
	// +optional
	OnFailure ConfigOnFailure `json:"onFailure,omitempty"`
	// PinConfig lets each revision of the workloads keep the config that it was rolled with,
	// as the annotation spillway.dev/pin-config: "true" on each of them does. It pins all that
	// a workload refers to. A workload with the annotation "false" is not pinned. Pins must be
	// enabled in the namespace. Default false.
	// +optional
	PinConfig bool `json:"pinConfig,omitempty"`
	// Track rolls the workloads that the policy selects when their config changes, as the
	// annotation spillway.dev/update-on-config-change: "true" on each of them does. A workload
	// with the annotation "false" is not tracked. A ClusterConfigPolicy tracks workloads of
	// namespaces whose names begin with "kube-" only if it names these. Default false.
	// +optional
	Track bool `json:"track,omitempty"`
	// Pause prevents further rolls for config until it is removed.
	// +optional
	Pause *Pause `json:"pause,omitempty"`
}

// ConfigReference is an object, or all objects of a kind or of a name.
//
// +kubebuilder:validation:XValidation:rule="has(self.kind) || has(self.name)",message="kind or name must be set"
type ConfigReference struct {
	// Kind is ConfigMap or Secret. Default: both.
	// +optional
	// +kubebuilder:validation:Enum=ConfigMap;Secret
	Kind string `json:"kind,omitempty"`
	// Name is that of the object. Default: all of the kind.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`
}

// ConfigStage is a set of workloads that are rolled before those of later stages. What is
// not set here is as in the policy.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.selector) && has(self.workloads))",message="a stage has either a selector or a number of workloads"
type ConfigStage struct {
	// Name identifies the stage.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Selector finds its workloads by their labels. Default: all that are in no earlier
	// stage.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Workloads is how many workloads belong to it, whatever their labels: a number, or a
	// percentage of all that use the object, rounded down, at least 1. Those that are rolled
	// already come first, then those of the earliest other stage, of the highest priority,
	// and by name.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : true",message="must be a number of at least 1, or a percentage from 1% to 100%"
	Workloads *intstr.IntOrString `json:"workloads,omitempty"`
	// MaxUnavailable is as in the policy.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : true",message="must be a number of at least 1, or a percentage from 1% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// MaxFailures is as in the policy.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([0-9]|[1-9][0-9]|100)%$`
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : true",message="must be a number of at least 0, or a percentage from 0% to 100%"
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`
	// Soak is as in the policy.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`
	Soak *metav1.Duration `json:"soak,omitempty"`
	// Gates are decisions, each in a RolloutGate. If a GateTemplate has the name of one,
	// Spillway measures it; otherwise a user or another client decides. After the last stage
	// there is nothing left to keep, and no gate is asked.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Gates []StageGate `json:"gates,omitempty"`
}

// StageGate is a gate of a stage.
type StageGate struct {
	GateReference `json:",inline"`

	// When is Before the stage begins, After its workloads are ready and have soaked, or
	// During its rollout: then a refusal stops what has not been updated yet, and the stage
	// is complete once the gate has passed. Default After.
	// +optional
	When GateTime `json:"when,omitempty"`
}

// GateTime is when a gate must pass.
// +kubebuilder:validation:Enum=Before;After;During
type GateTime string

// The times of a gate.
const (
	GateBefore GateTime = "Before"
	GateAfter  GateTime = "After"
	GateDuring GateTime = "During"
)

// ConfigOnFailure is what happens once more workloads have failed than are tolerated.
// +kubebuilder:validation:Enum=Stop;Rollback;Continue
type ConfigOnFailure string

// The answers to failure.
const (
	// StopConfig rolls no further workload for the same content.
	StopConfig ConfigOnFailure = "Stop"
	// RollbackConfig does the same, and gives the workloads that have failed their previous
	// config back.
	RollbackConfig ConfigOnFailure = "Rollback"
	// ContinueConfig continues as if nothing had failed.
	ContinueConfig ConfigOnFailure = "Continue"
)

// ConfigPolicyStatus has the releases that are under way. It is a report: nothing is
// decided from it.
type ConfigPolicyStatus struct {
	// ObservedGeneration is the generation of the policy that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Ready, Reconciling and Stalled, about the policy itself: a release
	// that waits or has failed does not make its policy unready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Phase is Complete, Progressing, Waiting, Paused or Failed, of all its releases.
	// +optional
	Phase string `json:"phase,omitempty"`
	// WaitingFor is the main reason why not all releases are complete, as a sentence.
	// +optional
	WaitingFor string `json:"waitingFor,omitempty"`
	// Underway is how many releases are not complete.
	// +optional
	Underway int32 `json:"underway"`
	// Releases are the first of them, by the names of their objects.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Releases []ConfigRelease `json:"releases,omitempty"`
	// History are the last releases of those above that ended, the newest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	History []PastConfigRelease `json:"history,omitempty"`
}

// PastConfigRelease is a release that is over.
type PastConfigRelease struct {
	// Object and Namespace are as in the release.
	Object    string `json:"object"`
	Namespace string `json:"namespace"`
	// Outcome is Complete, Superseded by another content, or RolledBack.
	Outcome string `json:"outcome"`
	// StartedAt is when it was first under way, FinishedAt when it was not any more.
	StartedAt  metav1.MicroTime `json:"startedAt"`
	FinishedAt metav1.MicroTime `json:"finishedAt"`
	// Stages has a row for each stage that began.
	// +optional
	// +listType=map
	// +listMapKey=name
	Stages []PastConfigStage `json:"stages,omitempty"`
}

// PastConfigStage is a stage of a release that is over.
type PastConfigStage struct {
	// Name is that of the stage.
	Name string `json:"name"`
	// StartedAt and FinishedAt are as in the release; FinishedAt is absent of a stage that was
	// not complete.
	StartedAt metav1.MicroTime `json:"startedAt"`
	// +optional
	FinishedAt *metav1.MicroTime `json:"finishedAt,omitempty"`
}

// ConfigRelease is an object with one content, and how far it has come among the workloads of a namespace.
type ConfigRelease struct {
	// Object is the object, and the first digits of a digest of its content: "Secret db@9676b5e".
	Object string `json:"object"`
	// Namespace is that of the workloads.
	Namespace string `json:"namespace"`
	// Phase is Progressing, Waiting, Paused or Failed.
	Phase string `json:"phase"`
	// Updated is how many workloads have it and are ready, of how many: "1/5".
	Updated string `json:"updated"`
	// RolledBack is how many workloads failed with it and have their previous config back.
	// +optional
	RolledBack int32 `json:"rolledBack,omitempty"`
	// WaitingFor is the main reason why it is not complete, as a sentence.
	// +optional
	WaitingFor string `json:"waitingFor,omitempty"`
	// Cause is the same in parts. Its count is that of the workloads that are not complete, and it names none of
	// them.
	// +optional
	Cause *RolloutCause `json:"cause,omitempty"`
	// Stages has a row for each stage.
	// +optional
	// +listType=map
	// +listMapKey=name
	Stages []ConfigStageStatus `json:"stages,omitempty"`
	// StartedAt is when it was first under way.
	// +optional
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`
}

// ConfigStageStatus is the state of a stage of a release.
type ConfigStageStatus struct {
	// Name is that of the stage.
	Name string `json:"name"`
	// Phase is as in the release, or Complete.
	Phase string `json:"phase"`
	// Updated is as in the release.
	Updated string `json:"updated"`
	// StartedAt is when it first did not wait and all stages before it were complete,
	// FinishedAt when it was first complete.
	// +optional
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`
	// +optional
	FinishedAt *metav1.MicroTime `json:"finishedAt,omitempty"`
}
