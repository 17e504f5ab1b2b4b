package lock

import "github.com/spillway-dev/spillway/rollout"

// The reasons of the guards and of scaling alike.
const (
	// ReasonMinTime: another zone was scaled down not long enough ago.
	// Action: nothing, it passes automatically; min-time-between-zones-downscale of the
	// StatefulSet that the message names says how long it takes, and must be set
	// where the message asks for it.
	ReasonMinTime rollout.Reason = "MinTimeBetweenZonesDownscale"
)
