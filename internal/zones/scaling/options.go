package scaling

import "time"

// Options are the choices of whoever runs the manager.
type Options struct {
	// ClusterDomain is the domain under which Services have names; it has a default.
	ClusterDomain string
	// PodTimeout is how long a Pod has to answer; zero has a default.
	PodTimeout time.Duration
	// Now is the clock.
	Now func() time.Time
}

const (
	// groupsParallel is how many groups are seen to at a time, so that slow Pods of one
	// keep no other waiting.
	groupsParallel = 32
	// maxPasses bounds how many passes follow one another: what Pods say is decided
	// upon at once.
	maxPasses = 4
	// writeTimeout bounds one write. Guards tell Pods within it.
	writeTimeout = 35 * time.Second
)
