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
	// Action: nothing if that is intended; otherwise add a stage that selects the cluster.
	ReasonNoStage rollout.Reason = "NoStage"
	// ReasonOrphan: the module is being removed from the cluster, and what runs is to
	// stay, but the Kustomization does not say so yet.
	// Action: nothing if the cluster answers; otherwise check why its assemblage is not
	// applied.
	ReasonOrphan rollout.Reason = "OrphanPending"
	// ReasonForeign: another manager has a sync with the module's name in an assemblage of
	// the cluster.
	// Action: remove or rename one of the two.
	ReasonForeign rollout.Reason = "DuplicateSync"
	// ReasonNoClusters: no cluster that the selector matches exists, or none of them can be
	// assigned anything.
	// Action: correct spec.selector, the labels of the clusters, or what the message says that
	// they lack; if the module is to be for no cluster, set spec.allowEmpty.
	ReasonNoClusters rollout.Reason = "NoClusters"
	// ReasonPinning: a cluster that was assigned a tag is assigned its commit or digest
	// before other clusters are updated.
	// Action: nothing, it normally completes without help; if it does not, check that the
	// commit can be fetched: a tag that is on no branch must be mutable.
	ReasonPinning rollout.Reason = "CommitPending"
	// ReasonUnknown: neither a Cluster nor a labeled Secret stands for a cluster that was
	// assigned the module, so that it counts as down.
	// Action: restore the Secret with its kubeconfig, or the Cluster; if the cluster is
	// gone for good, annotate its assemblage with spillway.dev/abandon-cluster=true and
	// delete it.
	ReasonUnknown rollout.Reason = "ClusterUnknown"
	// ReasonUnseen: it is not known yet what clusters run that the module is for.
	// Action: nothing, it normally completes without help; if it does not, check that the manager
	// can connect to them.
	ReasonUnseen rollout.Reason = "ClustersUnseen"
	// ReasonCheck: a check of the module does not hold on the cluster.
	// Action: give the cluster what the message says, or correct spec.rollout.checks; it is updated once
	// the check holds.
	ReasonCheck rollout.Reason = "CheckFailed"
	// ReasonClusterBudget: a ClusterBudget that the module shares with others does not permit to update the
	// cluster now.
	// Action: nothing if what the message names completes; otherwise fix or pin what has failed there, or change the
	// ClusterBudget.
	ReasonClusterBudget rollout.Reason = "ClusterBudgetUsed"
	// ReasonTerminating: the assemblage of the cluster is being deleted.
	ReasonTerminating = reasons.Terminating
	// ReasonRevision: the ModuleRevision does not exist yet.
	// Action: nothing, it is created automatically; if it is not, fix the error that the
	// log of the manager shows.
	ReasonRevision rollout.Reason = "RevisionMissing"
	// ReasonRevisionTaken: a ModuleRevision with the name that the module needs exists,
	// and has another owner.
	// Action: delete it, unless its module was deleted: then it is deleted automatically.
	ReasonRevisionTaken rollout.Reason = "RevisionTaken"
	// ReasonUnresolved: the commit or digest of a revision's tag cannot be recorded.
	// Action: nothing if a retry succeeds; otherwise let the manager write
	// modulerevisions/status, as the role of spillway install does.
	ReasonUnresolved rollout.Reason = "RevisionUnresolved"
)

// The reasons of conditions and Events, besides those of Holds.
const (
	// ReasonRolledBack: a revision failed, and the clusters return to the last one that
	// reached all of them.
	// Action: fix what failed, and change the template of the module, or try it once more with
	// spillway retry.
	ReasonRolledBack rollout.Reason = "RolledBack"
	// EventComplete: a revision has reached all clusters.
	// Action: nothing, for information only.
	EventComplete rollout.Reason = "RolloutComplete"
	// EventStageStarted: the update of a stage to a revision has started.
	// Action: nothing, for information only.
	EventStageStarted rollout.Reason = "StageStarted"
	// EventStageDone: all clusters of a stage are up to date, and its gates have passed.
	// Action: nothing, for information only.
	EventStageDone rollout.Reason = "StageDone"
	// EventGate: a stage waits for a gate.
	// Action: decide the gate: spillway fleet approve; with --refuse the rollout stops
	// there.
	EventGate rollout.Reason = "GateWaiting"
)

// What a user has decided: the reasons of the Events that the commands leave.
const (
	// ReasonRemovalApproved: a user has approved that clusters lose a module.
	// Action: nothing, for information only; to revert it, remove the annotation
	// spillway.dev/approve-removal.
	ReasonRemovalApproved rollout.Reason = "RemovalApproved"
)
