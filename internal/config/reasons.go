package config

import (
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/rollout"
)

// The ring's own reasons for a Hold, and for what it says on a workload.
const (
	// ReasonConfigMissing: something that a Pod cannot start without does not exist.
	// Action: create the object or the key that the message names.
	ReasonConfigMissing rollout.Reason = "ConfigMissing"
	// ReasonNotPermitted: something may not be looked at.
	ReasonNotPermitted = reasons.NotPermitted
	// ReasonCoalescing: the config has just changed and may go on changing.
	// Action: nothing, it passes by itself; spillway.dev/coalesce-window says how long
	// changes are gathered.
	ReasonCoalescing rollout.Reason = "Coalescing"
	// ReasonUnread: the config could not be read.
	// Action: nothing if it passes by itself, since it is tried again; otherwise the log
	// of the manager says what the API server answered.
	ReasonUnread rollout.Reason = "Unread"
	// ReasonReleasing: the workload was released, and Pods made before still wait.
	// Action: nothing, it passes by itself, unless the message names a Pod that the
	// partition holds: then lower the partition of the StatefulSet.
	ReasonReleasing rollout.Reason = "Releasing"
	// ReasonNotHeld: Pods of a zone would move out of turn, because the group does not
	// hold the zone at its revision.
	// Action: nothing, it passes by itself once the zones ring holds the zone; if it
	// does not, see that the manager runs with --rings=zones, and what spillway explain
	// says of the group.
	ReasonNotHeld rollout.Reason = "NotHeld"
	// ReasonInvalidAnnotation: an annotation could not be understood; the others count.
	// Action: correct the annotation as the message says.
	ReasonInvalidAnnotation rollout.Reason = "InvalidAnnotation"
)

// The reasons of Events that are no conditions, as the predecessor has them.
const (
	// EventChanged: the config has changed, and the workload was given the new hash.
	// Action: nothing, it is news.
	EventChanged rollout.Reason = "ConfigChanged"
	// EventSuspended: the Pods of a workload are not scheduled until their config exists.
	// Action: create the object or the key that the message names.
	EventSuspended rollout.Reason = "SchedulingDisabled"
	// EventReleased: the config that Pods waited for exists, and they are scheduled.
	// Action: nothing, it is news.
	EventReleased rollout.Reason = "SchedulingEnabled"
)
