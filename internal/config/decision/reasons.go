package decision

import (
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/rollout"
)

// The ring's own reasons for a Hold, and for the condition on a workload.
const (
	// ReasonConfigMissing: config that a Pod cannot start without does not exist.
	ReasonConfigMissing = workload.ReasonConfigMissing
	// ReasonNotPermitted: config must not be read.
	ReasonNotPermitted = reasons.NotPermitted
	// ReasonNotObserved: the manager has not recorded yet what it decides about a workload.
	ReasonNotObserved = reasons.NotObserved
	// ReasonCoalescing: the config has changed and may change again.
	// Action: nothing, the wait ends automatically; spillway.dev/coalesce-window sets how
	// long changes are collected.
	ReasonCoalescing rollout.Reason = "Coalescing"
	// ReasonUnread: a ConfigMap, a Secret or another source that the workload uses could not
	// be read, so its content is unknown and nothing rolls.
	// Action: nothing if a retry succeeds; otherwise fix the error that the log of the
	// manager shows.
	ReasonUnread rollout.Reason = "Unread"
	// ReasonReleasing: the workload was released, and its earlier Pods are not scheduled
	// yet.
	// Action: nothing, they are recreated automatically, unless the message names a Pod
	// that the partition keeps: then lower the partition of the StatefulSet.
	ReasonReleasing rollout.Reason = "Releasing"
	// ReasonNotHeld: Pods of a zone would be replaced out of turn, because the group does
	// not hold the zone at its revision.
	// Action: nothing, the zones ring holds the zone automatically; if it does not, check
	// that the manager runs with --rings=zones, and run spillway explain for the group.
	ReasonNotHeld rollout.Reason = "NotHeld"
	// ReasonPodsKept: Pods run an earlier revision, and the update strategy of the workload
	// leaves it to a user to replace them.
	// Action: delete the Pods that spillway explain names, lower the partition, or resume
	// the Deployment, as the message says.
	ReasonPodsKept rollout.Reason = "PodsKept"
	// ReasonPodNotReady: a StatefulSet waits for a Pod of an earlier revision, which was never
	// ready.
	// Action: nothing, the Pod is replaced at the time that the message names unless it becomes
	// ready; spillway.dev/stuck-pods: Keep turns that off.
	ReasonPodNotReady rollout.Reason = "StuckPodMayRecover"
	// ReasonConfigFailed: a workload does not become ready with a content of a ConfigMap or
	// Secret, so no other workload is rolled for the same content.
	// Action: correct the object: the new content is tried in turn. To try the same again, run
	// spillway retry for the object; spillway.dev/stop-on-failure: "false" turns the stop off.
	ReasonConfigFailed rollout.Reason = "ConfigFailed"
	// ReasonConfigUnverified: a workload that was rolled for the same content is not ready
	// for longer than it counts as rolling, or its Pods are not known yet.
	// Action: nothing, the wait ends when the workload is ready or has failed; spillway
	// explain for the workload that the message names says why it is not ready.
	ReasonConfigUnverified rollout.Reason = "ConfigUnverified"
	// ReasonConfigUndone: a user has restored an earlier revision, which keeps the config that
	// it was rolled with.
	// Action: nothing; the next change of the config rolls the workload. To roll it for the
	// present config, run spillway retry for the object.
	ReasonConfigUndone rollout.Reason = "ConfigUndone"
	// ReasonConfigRolledBack: the workload has failed with a change of its config, and got its
	// previous config back.
	// Action: correct the object that the message names: the new content is tried. To try the
	// same content again, run spillway retry for the object.
	ReasonConfigRolledBack rollout.Reason = "ConfigRolledBack"
	// ReasonConfigKeepsChanging: a ConfigMap or Secret was changed again after each of its last rolls, as by an
	// operator that writes addresses of Pods into it, so the next roll waits.
	// Action: end the loop: find out who writes the object, and let workloads ignore those keys
	// (spillway.dev/ignore-configmaps, spillway.dev/ignore-secrets). To roll it now, run spillway retry for the object.
	ReasonConfigKeepsChanging rollout.Reason = "ConfigKeepsChanging"
	// ReasonSnapshotMissing: the Pod template is pinned to a snapshot that was deleted, and the
	// content is not known any more, so new Pods cannot start.
	// Action: restore the snapshot that the message names, or remove the annotation
	// spillway.dev/pins of the Pod template: then the workload is rolled for the present config.
	ReasonSnapshotMissing rollout.Reason = "SnapshotMissing"
	// ReasonPinsUnavailable: the workload asks for revisions that keep their config, and the
	// manager cannot do that there, so it is rolled without.
	// Action: install with --pin-namespaces as the message says, or remove the annotation
	// spillway.dev/pin-config.
	ReasonPinsUnavailable rollout.Reason = "PinsUnavailable"
	// ReasonWaveFinalizer: the finalizer of wave before 2024 cannot be removed, so the
	// workload cannot be deleted.
	// Action: grant the manager patch on the objects that the message names, by a Role in
	// their namespace, as spillway check shows; or install with --wave-cleanup.
	ReasonWaveFinalizer rollout.Reason = "WaveFinalizer"
	// ReasonInvalidAnnotation: an annotation is invalid; the others count.
	// Action: correct the annotation as the message says.
	ReasonInvalidAnnotation rollout.Reason = "InvalidAnnotation"
)

// The reasons of Events that are not conditions, as in wave.
const (
	// EventChanged: the config has changed, and the workload has the new hash.
	// Action: nothing, for information only.
	EventChanged rollout.Reason = "ConfigChanged"
	// EventPodReplaced: a Pod was never ready at an earlier revision, and was deleted, so that it
	// is created at the present one.
	// Action: nothing, for information only.
	EventPodReplaced rollout.Reason = "StuckPodReplaced"
	// EventReloaded: a workload with annotations of Reloader was rolled, by the name that Reloader has for that, with
	// --reloader-metrics.
	// Action: nothing, for information only.
	EventReloaded rollout.Reason = "Reloaded"
	// EventReloadFail: the API server has refused to roll a workload with annotations of Reloader, by the name that
	// Reloader has for that, with --reloader-metrics.
	// Action: fix what the message names; the write is tried again.
	EventReloadFail rollout.Reason = "ReloadFail"
	// EventSuspended: the Pods of a workload are not scheduled until their config exists.
	// Action: create the object or the key that the message names.
	EventSuspended rollout.Reason = "SchedulingDisabled"
	// EventReleased: the missing config exists now, and the Pods are scheduled.
	// Action: nothing, for information only.
	EventReleased rollout.Reason = "SchedulingEnabled"
)
