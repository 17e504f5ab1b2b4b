package proxy

import (
	"time"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/binding"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
)

// Observed is one ProxyAssemblage and its Assemblage, read at one moment. It is
// immutable.
type Observed struct {
	Now time.Time
	// Chance is a number from 0 to 1 for the jitter between clusters.
	Chance float64
	Proxy  *v1alpha1.ProxyAssemblage
	// Hub is the name of this hub, empty if it has none.
	Hub string
	// Known are the objects of the hub that bindings refer to, as far as they were
	// read.
	Known binding.Known
	// Problem is why the cluster cannot be asked, nil if it was asked.
	Problem error
	// Lost is true if it is being deleted and its cluster was deleted.
	Lost bool
	// Refused is why the cluster refuses requests, empty if it does not.
	Refused string
	// KindMissing is true if it does not know the kind Assemblage.
	KindMissing bool
	// Live is the Assemblage on the cluster, nil if there is none.
	Live *v1alpha1.Assemblage
	// Refusal is the write of this pass that the cluster did not accept, nil if there is none.
	Refusal *outcome.Refusal
	// Orphaned is true if the ProxyAssemblage has no syncs and only Spillway has written it.
	Orphaned bool
	// Watched is true if a watch reports its changes.
	Watched bool
}
