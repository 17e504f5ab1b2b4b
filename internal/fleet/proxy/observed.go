package proxy

import (
	"time"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/agent"
	"github.com/spillway-dev/spillway/internal/fleet/binding"
)

// Observed is one ProxyAssemblage and what it stands for, read at one moment. Nobody
// changes it.
type Observed struct {
	Now time.Time
	// Chance is a number from 0 to 1 by which clusters are kept from marching in step.
	Chance float64
	Proxy  *v1alpha1.ProxyAssemblage
	// Known are the objects of the hub that bindings refer to, as far as they were
	// looked at.
	Known binding.Known
	// Problem is why the cluster cannot be asked, nil if it was asked.
	Problem error
	// Lost is true of one on its way out whose cluster was taken away.
	Lost bool
	// Refused is what the cluster says to whoever asks, empty if it answers.
	Refused string
	// KindMissing is true if it does not know the kind Assemblage.
	KindMissing bool
	// Live is the Assemblage on the cluster, nil if there is none.
	Live *v1alpha1.Assemblage
	// Refusal is the write of this pass that the cluster did not accept, nil if it has.
	Refusal *agent.Refusal
	// Deserted is true if nobody has anything in the ProxyAssemblage any more.
	Deserted bool
	// Watched is true if a change of it is told.
	Watched bool
}
