package verdict

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/workload"
)

// OfAdopted is the name of the record of the workloads of a namespace that were taken over as they ran.
const OfAdopted = "adopted"

// Adoptions are with what config workloads of a namespace were taken over.
type Adoptions struct {
	namespace string
	groups    map[workload.Baseline][]string
	size      int
}

// mostAdopted bounds the record: a workload beyond it has its baseline on itself.
const mostAdopted = 256 << 10

// NewAdoptions are none, of a namespace.
func NewAdoptions(namespace string) *Adoptions {
	return &Adoptions{namespace: namespace, groups: map[workload.Baseline][]string{}}
}

// Add adds a workload, if there is room for it.
func (a *Adoptions) Add(name workload.Name, with workload.Baseline) bool {
	unit := name.Kind + " " + name.Name
	size := len(unit) + len(`"",`)
	if a.groups[with] == nil {
		size += len(with.Template) + len(with.Scope) + len(with.First) + len(`{"template":"","config":"","first":"","workloads":[]},`)
	}
	if a.size+size > mostAdopted {
		return false
	}
	a.size, a.groups[with] = a.size+size, append(a.groups[with], unit)
	return true
}

// Record is the record of these, nil of none.
func (a *Adoptions) Record() *v1alpha1.ConfigRollout {
	if len(a.groups) == 0 {
		return nil
	}
	r := &v1alpha1.ConfigRollout{}
	r.Namespace, r.Name = a.namespace, OfAdopted
	for _, b := range slices.SortedFunc(maps.Keys(a.groups), compareBaselines) {
		slices.Sort(a.groups[b])
		r.Adopted = append(r.Adopted, v1alpha1.AdoptedWorkloads{Template: b.Template, Config: b.Scope, First: b.First, Workloads: a.groups[b]})
	}
	return r
}

func compareBaselines(a, b workload.Baseline) int {
	return cmp.Or(strings.Compare(a.Template, b.Template), strings.Compare(a.Scope, b.Scope), strings.Compare(a.First, b.First))
}

// Adopted is what a record says of adopted workloads; false if it is about something else.
func Adopted(r *v1alpha1.ConfigRollout) (map[workload.Name]workload.Baseline, bool) {
	if r.Name != OfAdopted {
		return nil, false
	}
	all := map[workload.Name]workload.Baseline{}
	for i := range r.Adopted {
		group := &r.Adopted[i]
		for _, unit := range group.Workloads {
			kind, name, _ := strings.Cut(unit, " ")
			all[workload.Name{Kind: kind, Namespace: r.Namespace, Name: name}] = workload.Baseline{Template: group.Template, Scope: group.Config, First: group.First}
		}
	}
	return all, true
}
