package config

import (
	"time"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/reloader"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/ring"
)

// Options are the manager's choices for the ring.
type Options struct {
	decision.Options

	// Namespaces are those to watch, all if empty.
	Namespaces []string
	// AllowCrossNamespace lets workloads name extra config of other namespaces
	// that did not opt in to it.
	AllowCrossNamespace bool
	// SuspendBy is how admission suspends a new workload whose config is missing.
	SuspendBy workload.SuspendBy
	// PinNamespaces are those whose workloads may keep the config of each revision, and PinBy
	// is what points their Pods at it.
	PinNamespaces pin.Namespaces
	PinBy         pin.By
	// Policies are the kinds of policies that can be read. Nil makes some of its own; admission
	// reads the same ones.
	Policies *policy.Kinds
	// DefaultPolicy is the ClusterConfigPolicy that the manager creates, once; nil is none.
	DefaultPolicy *v1alpha1.ClusterConfigPolicy
	// Zones is true if the zones ring runs, and replaces the Pods of StatefulSets
	// that form groups.
	Zones bool
	// LeaseNamespace and LeaseName are those of the Lease by which managers elect a leader.
	// What was rolled is recorded beside it, if the namespace is known.
	LeaseNamespace, LeaseName string
	// Reloader has annotations of Reloader read, nil for none.
	Reloader *reloader.Options
	// KeepRollouts restarts no Rollouts of Argo by these annotations.
	KeepRollouts bool
	// RunCronJobs starts a run of CronJobs whose config changes, where these annotations ask for it.
	RunCronJobs bool
	// ReloaderMetrics has rolls by these annotations counted and reported by the names of Reloader, too.
	ReloaderMetrics bool
	// By is the host name of the manager, which its records name.
	By string
	// Now is the clock.
	Now func() time.Time
}

// Watches is true if the workloads of a namespace are watched.
func (o *Options) Watches(namespace string) bool {
	return ring.Watches(o.Namespaces, namespace)
}

// PinnedByWebhook are the namespaces where webhooks point Pods at the snapshots of their config.
func (o *Options) PinnedByWebhook() pin.Namespaces {
	if o.PinBy != pin.ByWebhook {
		return pin.Namespaces{}
	}
	return o.PinNamespaces
}
