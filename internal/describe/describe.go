package describe

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/zones"
)

// The names of the rings, as the manager's flag has them.
const (
	Config = "config"
	Zones  = "zones"
	Plans  = "plans"
	Fleet  = "fleet"
)

// Options say what to look at, and by which rules the manager decides.
type Options struct {
	// Config are the rules; its clock and its namespaces count for all rings.
	Config config.Options
	// Namespace narrows the look, all are looked at if it is empty.
	Namespace string
	// Rings are the names of those to look at; all if there is none.
	Rings []string
	// Object is the one that is asked about, nil if all are. Of a ConfigMap or Secret all
	// workloads are beneath it that are rolled for it, and a policy is described also where
	// it does nothing.
	Object *Ref
	// Partial, if it is set, receives what is known so far whenever more is, until everything is
	// described. Calls do not overlap.
	Partial func(Partial)

	// Memory is that of the last description of what is watched, nil for who describes it once.
	Memory *Memory

	// known is what Partial received last, nil without it.
	known *known
}

// Description is the state of all that the caller may read.
type Description struct {
	// Units are those of all rings, ring by ring.
	Units []Unit `json:"units"`
	// Unseen are the rings that may not be looked at.
	Unseen []Forbidden `json:"unseen,omitempty"`
	// NoManager is why nothing of it is carried out, empty if it is, or if that is not known. Who
	// describes sets it, by [ManagerOf].
	NoManager string `json:"noManager,omitempty"`

	// Wake is when time alone may change it. Asked is true if the API server itself was asked, and
	// not only what is watched.
	Wake  time.Time `json:"-"`
	Asked bool      `json:"-"`
}

// Says is true if another description says the same.
func (d *Description) Says(other *Description) bool {
	return reflect.DeepEqual(d.Units, other.Units) && slices.Equal(d.Unseen, other.Unseen) && d.NoManager == other.NoManager
}

// Forbidden is a ring that may not be looked at, and what the API server says of that.
type Forbidden struct {
	Ring string `json:"ring"`
	Why  string `json:"why"`
}

// Describe reads the state of all rollouts. A ring whose kinds are not installed has nothing to
// show; one that the caller may not read is named, and the others are described. It
// is an error if there are no others.
func Describe(ctx context.Context, c client.Client, o Options) (Description, error) {
	now := o.Config.Now()
	o.Config.Now = func() time.Time { return now } // all rings are described as of one moment
	l := &look{Options: &o, now: now, client: c, shared: snapshot.New(c, c.Scheme(), o.Namespace)}
	if l.watched, _ = c.(*snapshot.Watched); l.watched == nil || o.Memory == nil {
		l.watched, o.Memory = nil, nil
	}
	rings := o.rings()
	units, errs := make([][]Unit, len(rings)), make([]error, len(rings))
	o.known = newKnown(rings, o.Partial)
	var all sync.WaitGroup
	for i, ring := range rings {
		all.Go(func() {
			units[i], errs[i] = l.ring(ctx, ring)
			o.known.described(ring, units[i])
		})
	}
	all.Wait()
	found, seen := Description{Units: slices.Concat(units...), Wake: l.wake, Asked: l.asked}, 0
	var forbidden error
	for i, err := range errs {
		switch {
		case err == nil:
			seen++
		case isNotInstalled(err):
		case apierrors.IsForbidden(err):
			found.Unseen = append(found.Unseen, Forbidden{rings[i], err.Error()})
			forbidden = cmp.Or(forbidden, err)
		default:
			return Description{}, err
		}
	}
	if forbidden != nil && seen == 0 {
		return Description{}, forbidden //nolint:wrapcheck // the ring has said what it was about
	}
	return found, nil
}

// rings describe them.
var rings = map[string]func(context.Context, *Options, *snapshot.Snapshot) (described, error){
	Config: describeConfig, Zones: describeZones, Plans: describePlans, Fleet: describeFleet,
}

// rings are those to look at, in the order in which they are shown.
func (o *Options) rings() []string {
	return slices.DeleteFunc(Rings(), func(ring string) bool { return len(o.Rings) > 0 && !slices.Contains(o.Rings, ring) })
}

// Rings are the names of all rings, in the order in which they are shown.
func Rings() []string { return []string{Config, Zones, Plans, Fleet} }

func isNotInstalled(err error) bool {
	return apimeta.IsNoMatchError(err) || errors.Is(err, zones.ErrNotInstalled) || errors.Is(err, hub.ErrNotInstalled)
}
