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
)
