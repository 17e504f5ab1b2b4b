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
	// ReasonLeader: the leader does not exist, or follows the set itself.
	// Action: name a StatefulSet of the group as the leader that follows no other.
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
	// ReasonDelay: Pods have not been prepared for long enough.
	// Action: nothing, it passes automatically; if Pods do not answer when they are asked to
	// prepare, see whether they serve the path that the annotation names.
	ReasonDelay rollout.Reason = "DownscaleDelayed"
)

// The reasons of Events that are no Holds.
const (
	// EventScaledUp: a StatefulSet was given more replicas.
	// Action: nothing, it is news.
	EventScaledUp rollout.Reason = "ScaledUp"
	// EventScaledDown: a StatefulSet was given fewer replicas.
	// Action: nothing, it is news.
	EventScaledDown rollout.Reason = "ScaledDown"
	// EventLabel: the minimum time between downscales is a label, which counts, but
	// is hard to edit.
	// Action: move it to the annotation that the message names.
	EventLabel rollout.Reason = "LabelInsteadOfAnnotation"
)
