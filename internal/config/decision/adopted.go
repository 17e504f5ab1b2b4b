package decision

import (
	"maps"
	"slices"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/verdict"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/ring"
)

// Adopted is what is recorded of the workloads that were taken over as they ran.
type Adopted struct {
	// Records are the records, by namespace.
	Records map[string]*v1alpha1.ConfigRollout
	// Unlisted are workloads in them that exist, and are not among those that were observed: a user may opt them in again.
	Unlisted map[workload.Name]workload.Baseline
	// Refusals are the writes that were refused.
	Refusals ring.Refusals
}

// adoptions are the writes after which the records say with what config workloads were taken over. It notes of which it
// cannot be recorded: there it stands on the workload.
func (o *Observed) adoptions() (writes []RecordWrite) {
	if !o.Recordable {
		return nil
	}
	all := map[string]*verdict.Adoptions{}
	in := func(namespace string) *verdict.Adoptions {
		if all[namespace] == nil {
			all[namespace] = verdict.NewAdoptions(namespace)
		}
		return all[namespace]
	}
	for name, b := range o.Adopted.Unlisted {
		in(name.Namespace).Add(name, b)
	}
	o.adopt(in, true) // what is recorded is not displaced
	o.adopt(in, false)
	for namespace := range o.Adopted.Records {
		in(namespace)
	}
	for _, namespace := range slices.Sorted(maps.Keys(all)) {
		write := RecordWrite{Before: o.Adopted.Records[namespace], After: all[namespace].Record(), Permits: true, adopts: true}
		if !write.isMade() {
			writes = append(writes, write)
		}
	}
	return writes
}

// adopt adds the workloads to the records of their namespaces that are recorded there, or those that are not.
func (o *Observed) adopt(in func(namespace string) *verdict.Adoptions, recorded bool) {
	for i := range o.Workloads {
		w := &o.Workloads[i]
		if b := w.Adoption(); b.Scope != "" && recorded == (w.Records.Adopted.Scope != "") {
			_, refused := o.Adopted.Refusals[recordNamed(w.Namespace, verdict.OfAdopted)]
			w.recordsAdoption = in(w.Namespace).Add(w.Name, b) && !refused
		}
	}
}
