package config

import (
	"time"

	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/health"
)

// Observed is the snapshot of one pass. It does not change afterwards.
type Observed struct {
	Now time.Time
	// Workloads are the relevant ones, in the order of their names.
	Workloads []Workload
}

// Workload is a workload, and what the ring observed of it.
type Workload struct {
	workload.Workload

	Health health.Report
	// Change is the change that the workload has not been rolled for yet.
	Change Change
	// Retry is set after a failed read, or a failed write of this generation.
	Retry *Retry
}
