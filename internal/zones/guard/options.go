package guard

import (
	"slices"
	"time"
)

// The paths that the predecessor serves.
const (
	PathNoDownscale      = "/admission/no-downscale"
	PathPrepareDownscale = "/admission/prepare-downscale"
	PathPodEviction      = "/admission/pod-eviction"
	PathValidation       = "/admission/zpdb-validation"
)

// DefaultClusterDomain is the domain under which Services have names.
const DefaultClusterDomain = "cluster.local."

// Options are the choices of whoever runs the manager.
type Options struct {
	// Namespaces are those to look at, all if empty.
	Namespaces []string
	// ClusterDomain is the domain under which Services have names.
	ClusterDomain string
	// PodTimeout is how long a Pod has to answer; zero has a default.
	PodTimeout time.Duration
	// FailClosed refuses what the predecessor lets pass when it cannot find out
	// whether a downscale is forbidden or has to be prepared.
	FailClosed bool
	// Now is the clock.
	Now func() time.Time
}

func (o Options) watches(namespace string) bool {
	return len(o.Namespaces) == 0 || slices.Contains(o.Namespaces, namespace)
}
