package argo

import "time"

// plan is the one write to make, if any.
type plan struct {
	// record is what the Rollout records from now on, empty if that stays.
	record string
	// restartAt is when Argo is to restart it, zero for never.
	restartAt time.Time
	// wake is when time alone changes something, zero for never.
	wake time.Time
}

// decide is pure.
func decide(o *observed) plan {
	switch {
	case o.Record != "" && o.IsRecorded:
		return plan{}
	case len(o.Changed) == 0 && (o.Record != "" || !o.IsMissed):
		return plan{record: o.Next}
	case o.rollout.Spec.Paused || o.IsPaused || len(o.Missing) > 0:
		return plan{}
	case o.isHeld:
		return plan{wake: o.opens}
	case o.Now.Before(o.Settled):
		return plan{wake: o.Settled}
	default:
		return plan{record: o.Next, restartAt: restartFor(o.Now)}
	}
}

// restartFor is the first full second after a time: Argo restarts the Pods that were created before, and Kubernetes knows
// full seconds alone. A Pod that was created in the second of a change may run without it.
func restartFor(now time.Time) time.Time { return now.Truncate(time.Second).Add(time.Second) }
