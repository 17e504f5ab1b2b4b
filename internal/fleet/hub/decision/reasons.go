package decision

import (
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/rollout"
)

// The reasons to wait that are the ring's own.
const (
	// ReasonInvalid: something in the module cannot be understood.
	ReasonInvalid = reasons.Invalid
	// ReasonWindow: no window is open.
	ReasonWindow = reasons.OutsideWindow
	// ReasonNoStage: no stage selects the cluster.
	// Action: add a stage that selects the cluster, or leave it as it is.
	ReasonNoStage rollout.Reason = "NoStage"
	// ReasonOrphan: the cluster loses the module, and what runs is to stay, but the
	// Kustomization does not say so yet.
	// Action: nothing if the cluster answers; otherwise see why its assemblage is not
	// carried out.
	ReasonOrphan rollout.Reason = "OrphanPending"
	// ReasonForeign: another manager keeps a sync of the module's name in the cluster's
	// assemblage.
	// Action: remove one of the two, or give one of them another name.
	ReasonForeign rollout.Reason = "DuplicateSync"
	// ReasonTerminating: the assemblage of the cluster is being deleted.
	ReasonTerminating = reasons.Terminating
	// ReasonRevision: there is no ModuleRevision yet.
	// Action: nothing, it passes automatically; if it does not, the log of the manager says
	// why the revision cannot be written.
	ReasonRevision rollout.Reason = "RevisionMissing"
	// ReasonRevisionTaken: there is a ModuleRevision of the name that the module needs, and
	// it has another owner.
	// Action: delete it, unless it is that of a module that was deleted: then it is deleted
	// automatically.
	ReasonRevisionTaken rollout.Reason = "RevisionTaken"
	// ReasonUnresolved: it cannot be written down what the tag of a revision is.
	// Action: nothing if it passes automatically, since it is tried again; otherwise let the
	// manager write modulerevisions/status, as the role of spillway install does.
	ReasonUnresolved rollout.Reason = "RevisionUnresolved"
)

// The reasons of conditions and Events, besides those of Holds.
const (
	// ReasonRolledBack: a revision has failed and was given up: the clusters go back,
	// or are back, to the last one that was on all of them.
	// Action: fix what failed, and change the template of the module to try again.
	ReasonRolledBack rollout.Reason = "RolledBack"
	// EventComplete: a revision is on all clusters.
	// Action: nothing, it is news.
	EventComplete rollout.Reason = "RolloutComplete"
	// EventStageStarted: a stage begins to move to a revision.
	// Action: nothing, it is news.
	EventStageStarted rollout.Reason = "StageStarted"
	// EventStageDone: all clusters of a stage are up to date, and its gates have passed.
	// Action: nothing, it is news.
	EventStageDone rollout.Reason = "StageDone"
	// EventGate: a stage waits for a gate.
	// Action: decide it: spillway fleet approve, with --refuse to stop the rollout there.
	EventGate rollout.Reason = "GateWaiting"
)

// What a user has decided of a gate: the reasons of its condition, and of the Event
// that the command leaves.
const (
	// ReasonApproved: a user has let a rollout through a gate.
	// Action: nothing, it is news; spillway fleet approve --refuse takes it back.
	ReasonApproved rollout.Reason = "Approved"
	// ReasonRemovalApproved: a user has approved that clusters lose a module.
	// Action: nothing, for information only; to take it back, remove the annotation
	// spillway.dev/approve-removal.
	ReasonRemovalApproved rollout.Reason = "RemovalApproved"
	// ReasonRefused: a user has stopped a rollout at a gate.
	// Action: to let it through after all: spillway fleet approve.
	ReasonRefused rollout.Reason = "Refused"
)
