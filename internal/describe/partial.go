package describe

import (
	"context"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/rollout"
)

// PhaseReading is that of a unit in a [Partial] whose state is not known yet.
const PhaseReading rollout.Phase = "Reading"

// Partial is what is known while the rest is being read.
type Partial struct {
	// Units are those of the rings that are described, and the tracked workloads, whose phase
	// is [PhaseReading] until their ring is described.
	Units []Unit
	// Reading are the rings that are not described yet.
	Reading []string
}

// known collects what is known, ring by ring.
type known struct {
	tell func(Partial)

	mu      sync.Mutex
	rings   []string
	units   map[string][]Unit
	reading []string
}

// newKnown is nil if no caller asks for it.
func newKnown(rings []string, tell func(Partial)) *known {
	if tell == nil {
		return nil
	}
	return &known{tell: tell, rings: rings, reading: slices.Clone(rings), units: map[string][]Unit{}}
}

// described says that a ring is described, or cannot be.
func (k *known) described(ring string, units []Unit) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reading = slices.DeleteFunc(k.reading, func(r string) bool { return r == ring })
	if k.units[ring] = units; len(k.reading) > 0 {
		k.say()
	}
}

// exist says which units a ring has, before their states are known.
func (k *known) exist(ring string, units []Unit) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.units[ring] = units
	k.say()
}

func (k *known) say() {
	var units []Unit
	for _, ring := range k.rings {
		units = append(units, k.units[ring]...)
	}
	k.tell(Partial{Units: units, Reading: slices.Clone(k.reading)})
}

// previewer is a reader that has the first page of a list long before all of it.
type previewer interface {
	// Preview sets a list to its first page, and is false if there is none.
	Preview(ctx context.Context, list client.ObjectList, namespace string) bool
}

// nameWorkloads says which workloads are tracked, the first of them as soon as a page of them
// was read, all as soon as they are listed: their states need much more. Whether they can be
// listed, the description itself says.
func nameWorkloads(ctx context.Context, o *Options, s *snapshot.Snapshot) {
	if o.known == nil || o.Object != nil {
		return
	}
	if p, ok := s.Live.(previewer); ok {
		first := workload.Preview(func(list client.ObjectList) bool { return p.Preview(ctx, list, o.Namespace) })
		if units := o.unread(first); len(units) > 0 {
			o.known.exist(Config, units)
		}
	}
	if objects, err := workload.List(ctx, s, []string{o.Namespace}); err == nil {
		o.known.exist(Config, o.unread(objects))
	}
}

// unread are the tracked ones among workloads, without their states.
func (o *Options) unread(objects []client.Object) []Unit {
	var units []Unit
	for _, obj := range objects {
		name := workload.NameOf(obj)
		if o.Config.Watches(name.Namespace) && workload.IsTracked(obj) {
			ref := Ref{Kind: name.Kind, Namespace: name.Namespace, Name: name.Name}
			units = append(units, Unit{Ref: ref, Ring: Config, Phase: PhaseReading, Sentence: name.Kind + " " + name.Name + " is being read"})
		}
	}
	return units
}
