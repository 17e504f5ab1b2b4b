package lock

import "github.com/spillway-dev/spillway/rollout"

// The reasons of the guards and of scaling alike.
const (
	// ReasonMinTime: another zone was scaled down less than the minimum time ago.
	// Action: nothing, the wait ends automatically; min-time-between-zones-downscale of
	// the StatefulSet that the message names sets the time, and must be set where the
	// message asks for it.
	ReasonMinTime rollout.Reason = "MinTimeBetweenZonesDownscale"
)
