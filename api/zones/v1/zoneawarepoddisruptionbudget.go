package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ZoneAwarePodDisruptionBudget bounds how many Pods may be evicted, of
// StatefulSets that are zones of one application.
//
// Without a podNamePartitionRegex it works by zone: Pods may be unavailable in only
// one zone at a time, and there no more than the budget. With one it works by
// partition: the budget is for all Pods of a partition, over all zones.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=zoneawarepoddisruptionbudgets,shortName=zpdb
// +kubebuilder:printcolumn:name=Max-Unavailable,type=integer,JSONPath=`.spec.maxUnavailable`
// +kubebuilder:printcolumn:name=Percentage,type=integer,JSONPath=`.spec.maxUnavailablePercentage`
// +kubebuilder:printcolumn:name=Partition-Regex,type=string,JSONPath=`.spec.podNamePartitionRegex`,priority=1
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type ZoneAwarePodDisruptionBudget struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the budget.
	Spec ZoneAwarePodDisruptionBudgetSpec `json:"spec"`
	// Status has the Pods whose eviction was admitted and not observed yet.
	// +optional
	Status ZoneAwarePodDisruptionBudgetStatus `json:"status,omitempty"`
}

// ZoneAwarePodDisruptionBudgetSpec is the budget. The API server itself refuses an
// invalid one, without a webhook.
//
// +kubebuilder:validation:XValidation:rule=`!(has(self.maxUnavailable) && has(self.maxUnavailablePercentage))`,message=`invalid value: only one of maxUnavailable or maxUnavailablePercentage may be set`
// +kubebuilder:validation:XValidation:rule=`!has(self.podNamePartitionRegex) || self.podNamePartitionRegex.size() == 0 || ['x'.matches('^' + self.podNamePartitionRegex + '$')].size() == 1`,message=`invalid value: regex is not valid`
// +kubebuilder:validation:XValidation:rule=`!has(self.podNamePartitionRegex) || self.podNamePartitionRegex.size() == 0 || self.podNamePartitionRegex.findAll(r'\\.|\[\^?\]?(\\.|[^\]\\])*\]|\([?]P?<|\([?]|\(').filter(t, t == '(' || t == '(?P<' || t == '(?<').size() >= 1`,message=`invalid value: regex is not valid, got regular expression requires at least one subexpression`
// +kubebuilder:validation:XValidation:rule=`!has(self.podNamePartitionRegex) || self.podNamePartitionRegex.size() == 0 || has(self.podNameRegexGroup) || self.podNamePartitionRegex.findAll(r'\\.|\[\^?\]?(\\.|[^\]\\])*\]|\([?]P?<|\([?]|\(').filter(t, t == '(' || t == '(?P<' || t == '(?<').size() <= 1`,message=`invalid value: regex is not valid, got regular expression has multiple subexpressions and requires podNameRegexGroup to be set`
// +kubebuilder:validation:XValidation:rule=`!has(self.podNamePartitionRegex) || self.podNamePartitionRegex.size() == 0 || !has(self.podNameRegexGroup) || self.podNamePartitionRegex.findAll(r'\\.|\[\^?\]?(\\.|[^\]\\])*\]|\([?]P?<|\([?]|\(').filter(t, t == '(' || t == '(?P<' || t == '(?<').size() >= self.podNameRegexGroup`,message=`invalid value: regex is not valid, got regular expression subexpression index out of range`
// +kubebuilder:validation:XValidation:rule=`!has(self.podNamePartitionRegex) || self.podNamePartitionRegex.size() == 0 || !has(self.maxUnavailablePercentage) || self.maxUnavailablePercentage == 0`,message=`invalid value: max unavailable percentage can not be used with partition awareness`
// +kubebuilder:validation:XValidation:rule=`!has(self.crossZoneEvictionDelay) || self.crossZoneEvictionDelay.size() == 0 || duration(self.crossZoneEvictionDelay) >= duration('0s')`,message=`invalid value: crossZoneEvictionDelay is not a valid duration`
// +kubebuilder:validation:XValidation:rule=`!has(self.crossZoneEvictionDelay) || self.crossZoneEvictionDelay.size() == 0 || (has(self.podNamePartitionRegex) && self.podNamePartitionRegex.size() > 0)`,message=`invalid value: crossZoneEvictionDelay can only be used with podNamePartitionRegex`
type ZoneAwarePodDisruptionBudgetSpec struct {
	// Selector finds the Pods and the StatefulSets that the budget is for.
	Selector Selector `json:"selector"`
	// MaxUnavailable is how many Pods of a zone or a partition may be unavailable.
	// With 0, none may be evicted. Default 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxUnavailable *int32 `json:"maxUnavailable,omitempty"`
	// MaxUnavailablePercentage is MaxUnavailable as a share of the replicas of a
	// zone, rounded down, at least one. Not with podNamePartitionRegex.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MaxUnavailablePercentage *int32 `json:"maxUnavailablePercentage,omitempty"`
	// PodNamePartitionRegex finds the partition in the whole name of a Pod.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	PodNamePartitionRegex string `json:"podNamePartitionRegex,omitempty"`
	// PodNameRegexGroup is the group of the expression that is the partition. It
	// must be set if there are several. Default 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	PodNameRegexGroup *int32 `json:"podNameRegexGroup,omitempty"`
	// CrossZoneEvictionDelay is how long a Pod must be ready until another of its
	// partition may be evicted: "20m". Only with podNamePartitionRegex.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	CrossZoneEvictionDelay string `json:"crossZoneEvictionDelay,omitempty"`
}

// Selector finds objects by their labels.
type Selector struct {
	// MatchLabels are the labels that an object must have, all of them.
	MatchLabels map[string]string `json:"matchLabels"`
}

// ZoneAwarePodDisruptionBudgetStatus has the Pods that were evicted recently.
type ZoneAwarePodDisruptionBudgetStatus struct {
	// DisruptedPods are Pods whose eviction was admitted, by name, and that are not
	// known to be evicted. They count as down. An entry whose eviction was never
	// made is dropped after some time.
	// +optional
	DisruptedPods map[string]DisruptedPod `json:"disruptedPods,omitempty"`
}

// DisruptedPod is a Pod whose eviction was admitted.
type DisruptedPod struct {
	// UID is that of the Pod.
	UID types.UID `json:"uid"`
	// At is when its eviction was admitted.
	At metav1.MicroTime `json:"at"`
}

// ZoneAwarePodDisruptionBudgetList is a list of ZoneAwarePodDisruptionBudgets.
//
// +kubebuilder:object:root=true
type ZoneAwarePodDisruptionBudgetList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ZoneAwarePodDisruptionBudget `json:"items"`
}
