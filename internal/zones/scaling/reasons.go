package scaling

import (
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/internal/zones/lock"
	"github.com/spillway-dev/spillway/rollout"
)

// The ring's own reasons for a Hold.
const (
	// ReasonInvalid: an annotation cannot be understood.
	ReasonInvalid = reasons.Invalid
	// ReasonLeader: the leader does not exist, or follows the StatefulSet itself.
	// Action: name a StatefulSet of the same group that does not follow this one.
	ReasonLeader rollout.Reason = "LeaderMissing"
	// ReasonLeaderNotReady: not all Pods of the leader are ready.
	// Action: nothing if they become ready; otherwise fix the Pods of the leader.
	ReasonLeaderNotReady rollout.Reason = "LeaderNotReady"
	// ReasonMinTime: another zone was scaled down not long enough ago.
	ReasonMinTime = lock.ReasonMinTime
	// ReasonMirror: the mirrored object cannot be read.
	// Action: create the object that the message names, or grant the permission that it
	// names.
	ReasonMirror rollout.Reason = "MirrorUnreadable"
	// ReasonDelay: the Pods that are to be removed have not been prepared for long enough.
	// Action: nothing, the wait ends automatically; if Pods do not answer, check that they
	// serve the path that the annotation names; if one does not run and has data, let it
	// run, or delete its PersistentVolumeClaim if the data is not needed.
	ReasonDelay rollout.Reason = "DownscaleDelayed"
	// ReasonContested: another client sets replicas back that Spillway has written.
	// Action: remove spec.replicas from what the other client applies, or have it ignore the
	// field; to keep other replicas than those of the leader, set
	// spillway.dev/rollout-force-replicas.
	ReasonContested rollout.Reason = "ReplicasContested"
)

// The reasons of Events that are no Holds.
const (
	// EventScaledUp: the replicas of a StatefulSet were raised.
	// Action: nothing, for information only.
	EventScaledUp rollout.Reason = "ScaledUp"
	// EventScaledDown: the replicas of a StatefulSet were lowered.
	// Action: nothing, for information only.
	EventScaledDown rollout.Reason = "ScaledDown"
	// EventRefused: the API server, or what it asks, refused to lower the replicas of a
	// StatefulSet. It is tried again, less often each time.
	// Action: fix what the message names.
	EventRefused rollout.Reason = "DownscaleRefused"
	// EventLabel: the minimum time between downscales is set by a label, which is valid,
	// but harder to change.
	// Action: move it to the annotation that the message names.
	EventLabel rollout.Reason = "LabelInsteadOfAnnotation"
)
