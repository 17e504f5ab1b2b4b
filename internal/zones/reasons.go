package zones

import "github.com/spillway-dev/spillway/rollout"

// The reasons of Events that are no Holds.
const (
	// EventZoneStarted: the update of a zone to a revision has started.
	// Action: nothing, for information only.
	EventZoneStarted rollout.Reason = "ZoneStarted"
	// EventZoneDone: all Pods of a zone are up to date and available.
	// Action: nothing, for information only.
	EventZoneDone rollout.Reason = "ZoneDone"
	// EventNameless: the name of a group is not valid for an object, so there is no
	// RolloutGroup, and nothing of the group rolls.
	// Action: change the label rollout-group of its StatefulSets as the message says.
	EventNameless rollout.Reason = "InvalidRolloutGroup"
	// EventIgnored: a StatefulSet of a group has a label or an annotation that has no effect,
	// such as one that is proposed for rollout-operator.
	// Action: do what the message says instead, and remove it.
	EventIgnored rollout.Reason = "SettingIgnored"
)
