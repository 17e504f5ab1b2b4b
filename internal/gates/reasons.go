package gates

import "github.com/spillway-dev/spillway/rollout"

// The reasons of the condition Passed, and of Events.
const (
	// ReasonMeasuring: a gate is being measured and has no verdict yet.
	// Action: nothing, the wait ends automatically; the message has the last values.
	ReasonMeasuring rollout.Reason = "Measuring"
	// ReasonMeasured: the verdict of a gate follows from what was measured.
	// Action: of a gate that was refused, fix what the values show and roll out another
	// revision; or delete the RolloutGate to measure again.
	ReasonMeasured rollout.Reason = "Measured"
	// ReasonDryRun: a gate lets the rollout through, and records what it would decide.
	// Action: nothing, for information only; remove dryRun from the GateTemplate once the
	// values are as expected.
	ReasonDryRun rollout.Reason = "DryRun"
	// EventPassed: a gate has passed by what was measured.
	// Action: nothing, for information only.
	EventPassed rollout.Reason = "GatePassed"
)
