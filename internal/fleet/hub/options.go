package hub

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spillway-dev/spillway/internal/fleet/cluster"
)

// Options are the choices of the user who runs the manager.
type Options struct {
	// Namespaces are those to look at, all if empty.
	Namespaces []string
	// StatusDelay is how old a status may become while nothing is written that it
	// could be part of. Zero is [DefaultStatusDelay], and less writes it in the pass that decides it.
	StatusDelay time.Duration
	// Assemblages adds the controllers that carry out what is assigned. No controller
	// does if it is nil.
	Assemblages func(context.Context, ctrl.Manager, *cluster.Directory) error
	// Facts says what clusters serve. No check that depends on it holds if it is nil.
	Facts *cluster.FactBook
	// Looks is true if those look at each cluster first, and say what they have found.
	Looks bool
	// HubName is part of what the hub is known by on the clusters.
	HubName string
	// By is the host name of the manager, which its records name.
	By string
	// Now is the clock.
	Now func() time.Time
}

// DefaultStatusDelay makes of the reports of many clusters one write a second.
const DefaultStatusDelay = time.Second

const (
	// maxModules is how many modules are seen to at a time.
	maxModules = 8
	// together is how long to wait for more reports before looking at a module.
	batchDelay = 50 * time.Millisecond
)
