package record

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Rollout is how far a change has come and why it has not come further, as the manager has decided it.
// The manager alone writes it, and only if something but the time of the decision differs. It is bounded: what
// waits for the same is one cause, of which it names the units.
type Rollout struct {
	// Target identifies what is rolled out: the digest of a content, a revision, a plan with a digest of
	// what it applies.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Target string `json:"target,omitempty"`
	// Changed names what of it has changed, if that is known: keys of a ConfigMap or Secret. There are at
	// most 20.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Changed []string `json:"changed,omitempty"`
	// ChangedBy is who made the change: the field manager that wrote what is rolled out, the user who ordered it, or
	// spillway if it returns units to what they had before. It is absent where that is not known.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	ChangedBy string `json:"changedBy,omitempty"`
	// Phase is Complete, Progressing, Waiting, Paused or Failed; and, where the kind has them, RollingBack,
	// RolledBack, Stalled or Deleting.
	// +kubebuilder:validation:MaxLength=63
	Phase string `json:"phase"`
	// Reason is why it is not complete, empty once it is, and where no reason sums the causes up.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Reason string `json:"reason,omitempty"`
	// StartedAt is when the manager saw first that some unit is not at the target, FinishedAt when all
	// were, absent while one is not.
	StartedAt metav1.MicroTime `json:"startedAt"`
	// +optional
	FinishedAt *metav1.MicroTime `json:"finishedAt,omitempty"`
	// MovedAt is when the first unit was updated to it, absent until then.
	// +optional
	MovedAt *metav1.MicroTime `json:"movedAt,omitempty"`
	// Units counts the units.
	Units Counts `json:"units"`
	// Stages are the parts that roll as a whole, in their order: the zones of a group, the stages of a module,
	// the phases of a plan. There are at most 100.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Stages []Stage `json:"stages,omitempty"`
	// WaitingFor is the sentence that says most about it, empty once it is complete.
	// +optional
	WaitingFor string `json:"waitingFor,omitempty"`
	// Causes are why units are not complete, what says most first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Causes []Cause `json:"causes,omitempty"`
	// Notes are worth knowing though nothing waits for them: failures that are tolerated, a setting with a
	// risk. There are at most 10.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Notes []string `json:"notes,omitempty"`
	// DecidedAt is when the manager decided this.
	DecidedAt metav1.MicroTime `json:"decidedAt"`
	// DecidedBy is which replica of the manager did: its host name, that of its Pod, with which the holder of its Lease
	// begins.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	DecidedBy string `json:"decidedBy,omitempty"`
}

// Stage is a part that rolls as a whole.
type Stage struct {
	// Name is that of the zone, the stage or the phase. Units in it are named STAGE/UNIT.
	Name string `json:"name"`
	// Phase is as that of the whole. Reason is why it is not complete, empty if it is or if it moves.
	// +kubebuilder:validation:MaxLength=63
	Phase string `json:"phase"`
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Reason string `json:"reason,omitempty"`
	// Message is the sentence that says most about it, empty once it is complete.
	// +optional
	Message string `json:"message,omitempty"`
	// WaitsFor is another stage that it waits for.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	WaitsFor string `json:"waitsFor,omitempty"`
	// Since is when that began.
	// +optional
	Since *metav1.MicroTime `json:"since,omitempty"`
	// Total are its units, Complete those of them that are.
	Total    int32 `json:"total"`
	Complete int32 `json:"complete"`
	// Evidence is how much shows that the target is good, absent where none is required.
	// +optional
	Evidence *Evidence `json:"evidence,omitempty"`
}

// Evidence counts the units whose state shows that the target is good.
type Evidence struct {
	// Shown are those that do, Required is how many have to before the stage is complete.
	Shown    int32 `json:"shown"`
	Required int32 `json:"required"`
}

// Counts are numbers of units. Each unit counts in Total, and in one of the others.
type Counts struct {
	Total    int32 `json:"total"`
	Complete int32 `json:"complete"`
	// Moving are those that are updated now, or are next.
	Moving  int32 `json:"moving"`
	Waiting int32 `json:"waiting"`
	Failed  int32 `json:"failed"`
}

// Cause is why units are not complete. The sentence about one of them is SUBJECT DOES: WHY, where
// the subject is the unit if there is no other.
type Cause struct {
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
	About *Reference `json:"about,omitempty"`
	// On is the unit that the others wait for.
	// +optional
	On *Reference `json:"on,omitempty"`
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
	// Removed is true if they are removed: a Pod that is not wanted any more, a cluster that loses the module.
	// +optional
	Removed bool `json:"removed,omitempty"`
	// Count is how many units there are.
	Count int32 `json:"count"`
	// Units are they, the first 5000 of them, fewer where all names together would be too long: "Deployment web",
	// or "STAGE/UNIT" of what has stages. The name of a stage alone is that of the stage as a whole, which
	// counts in no number of units.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5000
	Units []string `json:"units"`
}

// Reference refers to an object, or to a unit.
type Reference struct {
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Namespace is empty if it is that of the record.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Past is a rollout that is over.
type Past struct {
	// Target, Changed and ChangedBy are as in a Rollout.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Target string `json:"target,omitempty"`
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Changed []string `json:"changed,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=128
	ChangedBy string `json:"changedBy,omitempty"`
	// Outcome is Complete, Failed, RolledBack or Superseded.
	// +kubebuilder:validation:MaxLength=63
	Outcome string `json:"outcome"`
	// Message is why it did not complete.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// UndoneBy is who ended it before it was complete: spillway, if it returned units to what they had before, or the
	// field manager that wrote the next one. It is absent where that is not known.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	UndoneBy string `json:"undoneBy,omitempty"`
	// StartedAt is when it began, FinishedAt when it was complete or another one began.
	StartedAt  metav1.MicroTime `json:"startedAt"`
	FinishedAt metav1.MicroTime `json:"finishedAt"`
	// MovedAt is when the first unit was updated to it.
	// +optional
	MovedAt *metav1.MicroTime `json:"movedAt,omitempty"`
}
