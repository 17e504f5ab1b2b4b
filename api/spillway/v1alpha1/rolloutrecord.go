package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RolloutRecord is how far a change has come and why it has not come further, as the manager has decided it.
// The manager alone writes it, and only if something of it is another. It is bounded: what waits for the same
// is one cause, of which it names the units.
type RolloutRecord struct {
	// Target identifies what is rolled out: the digest of a content, a revision.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Target string `json:"target,omitempty"`
	// Changed names what of it has changed, if that is known: keys of a ConfigMap or Secret. There are at
	// most 20.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Changed []string `json:"changed,omitempty"`
	// Phase is Complete, Progressing, Waiting, Paused or Failed.
	// +kubebuilder:validation:MaxLength=63
	Phase string `json:"phase"`
	// StartedAt is when the manager saw first that some unit is not at the target, FinishedAt when all
	// were, absent until then.
	StartedAt metav1.MicroTime `json:"startedAt"`
	// +optional
	FinishedAt *metav1.MicroTime `json:"finishedAt,omitempty"`
	// MovedAt is when the first unit was updated to it, absent until then.
	// +optional
	MovedAt *metav1.MicroTime `json:"movedAt,omitempty"`
	// Units counts the units.
	Units RolloutCounts `json:"units"`
	// WaitingFor is the sentence that says most about it, empty once it is complete.
	// +optional
	WaitingFor string `json:"waitingFor,omitempty"`
	// Causes are why units are not complete, what needs a user first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Causes []RolloutCause `json:"causes,omitempty"`
	// DecidedAt is when the manager decided this.
	DecidedAt metav1.MicroTime `json:"decidedAt"`
}

// RolloutCounts are numbers of units. Each unit counts in Total, and in one of the others.
type RolloutCounts struct {
	Total    int32 `json:"total"`
	Complete int32 `json:"complete"`
	// Moving are those that are updated now, or are next.
	Moving  int32 `json:"moving"`
	Waiting int32 `json:"waiting"`
	Failed  int32 `json:"failed"`
}

// RolloutCause is why units are not complete. The sentence about one of them is SUBJECT DOES: WHY, where
// the subject is the unit if there is no other.
type RolloutCause struct {
	// State is a word: Next, Rolling, Late, Waiting or Failed.
	// +kubebuilder:validation:MaxLength=63
	State string `json:"state"`
	// Reason is why, empty if they are next.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Reason string `json:"reason,omitempty"`
	// Subject is what is in the way, empty if that is the unit itself.
	// +optional
	Subject string `json:"subject,omitempty"`
	// Does is what it does: "is waiting", "failed".
	Does string `json:"does"`
	// Why is what follows after a colon, empty if nothing does.
	// +optional
	Why string `json:"why,omitempty"`
	// About is the object that decides: what has to exist, be resumed, be corrected or be approved.
	// +optional
	About *RolloutReference `json:"about,omitempty"`
	// On is the unit that the others wait for.
	// +optional
	On *RolloutReference `json:"on,omitempty"`
	// Since is when it began, Until when it ends automatically, Deadline when the first of the units counts as
	// failed.
	// +optional
	Since *metav1.MicroTime `json:"since,omitempty"`
	// +optional
	Until *metav1.MicroTime `json:"until,omitempty"`
	// +optional
	Deadline *metav1.MicroTime `json:"deadline,omitempty"`
	// Position is the place of the first unit in a queue, from 1. The others follow.
	// +optional
	Position int32 `json:"position,omitempty"`
	// Count is how many units there are.
	Count int32 `json:"count"`
	// Units are they, the first 5000 of them: "Deployment web".
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5000
	Units []string `json:"units"`
}

// RolloutReference refers to an object.
type RolloutReference struct {
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Namespace is empty if it is that of the record.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// PastRolloutRecord is a rollout that is over.
type PastRolloutRecord struct {
	// Target and Changed are as in a RolloutRecord.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Target string `json:"target,omitempty"`
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Changed []string `json:"changed,omitempty"`
	// Outcome is Complete, Failed, RolledBack or Superseded.
	// +kubebuilder:validation:MaxLength=63
	Outcome string `json:"outcome"`
	// Message is why it did not complete.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// StartedAt is when it began, FinishedAt when it was complete or another one began.
	StartedAt  metav1.MicroTime `json:"startedAt"`
	FinishedAt metav1.MicroTime `json:"finishedAt"`
	// MovedAt is when the first unit was updated to it.
	// +optional
	MovedAt *metav1.MicroTime `json:"movedAt,omitempty"`
}
