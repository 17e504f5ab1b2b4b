package manager

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// IsLed is true if a replica holds the Lease, and has renewed it in time.
func IsLed(lease *coordinationv1.Lease, now time.Time) bool {
	s := &lease.Spec
	if s.HolderIdentity == nil || *s.HolderIdentity == "" || s.RenewTime == nil || s.LeaseDurationSeconds == nil {
		return false
	}
	return now.Before(s.RenewTime.Add(time.Duration(*s.LeaseDurationSeconds) * time.Second))
}
