package guard

import "time"

// The paths that rollout-operator serves.
const (
	PathNoDownscale      = "/admission/no-downscale"
	PathPrepareDownscale = "/admission/prepare-downscale"
	PathPodEviction      = "/admission/pod-eviction"
	// PathPrepareScale is ours: the same answers as those of PathPrepareDownscale, about Scales.
	PathPrepareScale = "/admission/prepare-downscale/scale"
	PathValidation   = "/admission/zpdb-validation"
)

// Options are what the user of the manager chooses.
type Options struct {
	// ClusterDomain is the domain under which Services have names.
	// Empty is [preparehook.DefaultDomain].
	ClusterDomain string
	// PodTimeout is how long a Pod has to answer; zero has a default.
	PodTimeout time.Duration
	// FailClosed refuses what rollout-operator lets pass when it cannot find out
	// whether a downscale is forbidden or must be prepared.
	FailClosed bool
	// Now is the clock.
	Now func() time.Time
}
