package lock

import "github.com/spillway-dev/spillway/internal/rollout"

// ReasonMinTime: another zone was scaled down not long enough ago.
// Mend: nothing, it passes by itself; min-time-between-zones-downscale of the
// StatefulSet that the message names says how long it takes, and has to be set where
// the message asks for it.
const ReasonMinTime rollout.Reason = "MinTimeBetweenZonesDownscale"
