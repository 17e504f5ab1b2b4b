package guard

import "time"

// The paths that the predecessor serves.
const (
	PathNoDownscale      = "/admission/no-downscale"
	PathPrepareDownscale = "/admission/prepare-downscale"
	PathPodEviction      = "/admission/pod-eviction"
	PathValidation       = "/admission/zpdb-validation"
)

// Options are the choices of whoever runs the manager.
type Options struct {
	// ClusterDomain is the domain under which Services have names.
	// Empty is [notice.DefaultDomain].
	ClusterDomain string
	// PodTimeout is how long a Pod has to answer; zero has a default.
	PodTimeout time.Duration
	// FailClosed refuses what the predecessor lets pass when it cannot find out
	// whether a downscale is forbidden or has to be prepared.
	FailClosed bool
	// Now is the clock.
	Now func() time.Time
}
