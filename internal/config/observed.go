package config

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/health"
	"github.com/spillway-dev/spillway/rollout"
)

// Observed is what the ring saw in one pass. Nothing changes it afterwards.
type Observed struct {
	Now time.Time
	// Workloads are those in sight, in the order of their names.
	Workloads []Workload
}

// Workload is a workload in sight, and everything known about its config.
type Workload struct {
	Name
	UID        types.UID
	Generation int64
	Settings   Settings
	Template   Template
	Health     health.Report
	// Uses are the objects that count, with what is known of them.
	Uses []Use
	// Missing is what has to exist and does not.
	Missing []Missing
	// Denied says, as sentences, what may not be looked at and how to fix it.
	Denied []string
	// Hashes are of the present contents; nil if they were not needed, because
	// something is missing, denied or still changing, or could not be read.
	Hashes *Hashes
	// Change is the change that the workload has not been rolled for yet.
	Change Change
	// Retry is set after a failed read, or a failed write of this generation.
	Retry *Retry
	// Records are what earlier passes wrote on the workload.
	Records    Records
	Suspension Suspension
	// Zone is how a StatefulSet that is a zone of a group is held, zero for others.
	Zone Zone
	// Legacy are the traces of old versions of the predecessor.
	Legacy Legacy

	object client.Object
}

// Template is what the ring looks at in a Pod template.
type Template struct {
	// Hash is the present hash, empty if there is none, and HashName the name
	// that it has or is to have.
	Hash, HashName string
	// Annotated is true if the template has any annotation.
	Annotated bool
	// Scheduler is the schedulerName.
	Scheduler string
	// Gates is how many scheduling gates there are, ours included.
	Gates int
}

// Use is a reference and what is known of its object.
type Use struct {
	Reference
	Exists bool
	// Ignored is true if its changes do not count.
	Ignored bool
}

// Missing is a required object, or a required key of one.
type Missing struct {
	Object Object
	// Key is empty if the object itself does not exist.
	Key string
}

// Hashes are the hashes of one workload's config at one moment.
type Hashes struct {
	// Desired is what belongs on the template.
	Desired string
	// Equivalent are hashes that mean the same to the Pods.
	Equivalent []string
	// Predecessor is the hash in the predecessor's scope, empty if that is the same
	// as ours whatever the contents.
	Predecessor string
	// Unignored is the hash with nothing ignored, empty if nothing is.
	Unignored string
}

// Change is a change of config that has been seen and not been rolled.
type Change struct {
	// First and Last bound the changes seen; zero if none was seen to happen.
	First, Last time.Time
	// Keys are what changed: "ConfigMap app: LOG_LEVEL". Nil if not known.
	Keys []string
}

// Retry puts off what failed.
type Retry struct {
	At     time.Time
	Reason string
	// Write is true if it was a write that failed; else it was a read.
	Write bool
}

// Records are what the ring wrote on a workload.
type Records struct {
	Roll     Roll
	Baseline Baseline
	// Condition is what it says on the workload now, nil if nothing.
	Condition *Condition
}

// Roll is the last roll.
type Roll struct {
	// At is when the ring wrote the hash, zero if never.
	At time.Time `json:"at,omitzero"`
	// Admitted is when admission last set it, in a write of the user's.
	Admitted time.Time `json:"admitted,omitzero"`
	// Changed names what had changed: "ConfigMap app: LOG_LEVEL".
	Changed []string `json:"changed,omitempty"`
	// Template is a digest of the Pod template that was rolled, but for the hash: once
	// that is another, how the Pods do is not for this roll to say.
	Template string `json:"template,omitempty"`
}

// Baseline equates a hash on a template with the hash of a larger or smaller
// scope, at the moment when a workload was adopted.
type Baseline struct {
	Template, Scope string
}

// Condition is a Kubernetes condition, kept as JSON in an annotation because
// the status of a workload is not ours to write.
type Condition struct {
	Type    string         `json:"type"`
	Status  string         `json:"status"`
	Reason  rollout.Reason `json:"reason"`
	Message string         `json:"message"`
	Since   time.Time      `json:"lastTransitionTime"`
}

// equal compares two conditions, either of which may be nil for none.
func (c *Condition) equal(other *Condition) bool {
	if c == nil || other == nil {
		return c == other
	}
	return c.Type == other.Type && c.Status == other.Status &&
		c.Reason == other.Reason && c.Message == other.Message && c.Since.Equal(other.Since)
}

// Zone is the part that a StatefulSet has in a group, whose Pods the zones ring
// moves.
type Zone struct {
	// Group is the group's name, empty if it is in none.
	Group string
	// Open is true if its controller would move Pods as soon as the template changes.
	Open bool
}

// Suspension is how a workload's Pods are kept from being scheduled until their
// config exists.
type Suspension struct {
	// Gate is the place of our scheduling gate in the Pod template, counted from
	// 1; zero if it is not there.
	Gate int
	// Scheduler is true if the template names the scheduler that does not exist,
	// which is the predecessor's way, and Restore is the one to restore.
	Scheduler bool
	Restore   string
	// Freeing is true if the template was released, and Pods that were made before
	// are not known to be free yet.
	Freeing bool
	// Seen is true if the workload's controller has seen the present template.
	Seen bool
	// Waiting are the Pods that are still suspended, if they are Known. They are
	// looked up only while Freeing.
	Waiting []WaitingPod
	Known   bool
}

// WaitingPod is a Pod that has never been scheduled, and never will be.
type WaitingPod struct {
	Name, Version string
	UID           types.UID
	// Held is true if it would come back as it is, because the partition of its
	// StatefulSet holds it at its revision.
	Held bool
}

// Legacy are the traces that old versions of the predecessor left.
type Legacy struct {
	// Finalizer is true if the workload has the predecessor's finalizer.
	Finalizer bool
	// Owns are ConfigMaps and Secrets that would be deleted with the workload.
	Owns []Owned
}

// Owned is an object with an owner reference to a workload.
type Owned struct {
	Object
	// Index is the place of the owner reference, UID whose it is.
	Index int
	UID   types.UID
}

// accepted is the hash that the config would have if nothing had changed since
// the template's was written.
func (w *Workload) accepted() string {
	if w.hasBaseline() {
		return w.Records.Baseline.Scope
	}
	return w.Template.Hash
}

// hasBaseline is true if there is a baseline, and it is of the template's hash.
func (w *Workload) hasBaseline() bool {
	return w.Template.Hash != "" && w.Records.Baseline.Template == w.Template.Hash
}
