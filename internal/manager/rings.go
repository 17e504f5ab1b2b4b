package manager

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/admit"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/fleet/agent"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/fleet/proxy"
	"github.com/spillway-dev/spillway/internal/gates"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/notify"
	"github.com/spillway-dev/spillway/internal/plans"
	plansadmit "github.com/spillway-dev/spillway/internal/plans/admit"
	"github.com/spillway-dev/spillway/internal/steering"
	"github.com/spillway-dev/spillway/internal/tracing"
	"github.com/spillway-dev/spillway/internal/zones"
	"github.com/spillway-dev/spillway/internal/zones/guard"
	"github.com/spillway-dev/spillway/internal/zones/preparation"
	"github.com/spillway-dev/spillway/internal/zones/scaling"
)

// The rings that there are.
const (
	RingConfig = "config"
	RingZones  = "zones"
	RingPlans  = "plans"
	RingFleet  = "fleet"
	// RingAssemblage is the part of the fleet that runs on workload clusters.
	RingAssemblage = "assemblage"
)

// Rings are the names of the rings that run unless others are asked for.
func Rings() []string { return []string{RingConfig, RingZones, RingPlans} }

// CheckRings returns an error for a name that no ring has, and for no name.
func CheckRings(names []string) error {
	known := append(Rings(), RingFleet, RingAssemblage)
	if len(names) == 0 {
		return fmt.Errorf("--rings: name at least one of %s", strings.Join(known, ", "))
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("--rings: there is no ring %q; choose from %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// ring is one of the rings, as far as the manager has to do with it.
type ring struct {
	name string
	// interests are the kinds that the ring watches, and how the cache holds them.
	interests []kube.Interest
	// attributed are kinds of which the cache keeps who has written them, whether or
	// not they are installed.
	attributed []client.Object
	// reduced are kinds of which the cache keeps only what the ring reads, whether
	// or not they are installed.
	reduced []kube.Interest
	setup   func(context.Context, ctrl.Manager) error
	// routes answer the ring's webhooks, which [Options.Declarations] lists. Nil if it has none.
	routes func(ctrl.Manager) ([]admission.Route, error)
}

// HasGates is true of a ring whose rollouts may have gates.
func HasGates(ring string) bool {
	return slices.Contains([]string{RingConfig, RingZones, RingPlans, RingFleet}, ring)
}

// gates are the options of the controller of gates, with a clock.
func (o Options) gates() gates.Options {
	if o.Gates.Now == nil {
		o.Gates.Now = o.clock()
	}
	o.Gates.Namespaces, o.Gates.Own = o.Namespaces, o.Own
	return o.Gates
}

// notify are the options of the controller of Notifiers, with what the manager knows.
func (o Options) notify() notify.Options {
	if o.Notify.Now == nil {
		o.Notify.Now = o.clock()
	}
	o.Notify.Rings, o.Notify.Namespaces, o.Notify.Hosts, o.Notify.Own = o.Rings, o.Namespaces, o.Gates.Hosts, o.Own
	o.Notify.Traced = o.Traces.Receiver != ""
	return o.Notify
}

// traces are the options of what writes traces, with what the manager knows.
func (o Options) traces() tracing.Options {
	if o.Traces.Now == nil {
		o.Traces.Now = o.clock()
	}
	o.Traces.Rings, o.Traces.Namespaces = o.Rings, o.Namespaces
	return o.Traces
}

// clock is that of a ring.
func (o Options) clock() func() time.Time {
	for _, now := range []func() time.Time{o.Fleet.Now, o.Zones.Now, o.Plans.Now, o.Config.Now} {
		if now != nil {
			return now
		}
	}
	return nil
}

// Declarations is what a ring wants the cluster to have besides the manager. It is
// known without one, so that it can be installed.
func (o Options) Declarations(ring string) admission.Declared {
	declared := o.declarations(ring)
	declared.Policies = append(declared.Policies, steering.Policies(ring)...)
	return declared
}

func (o Options) declarations(ring string) admission.Declared {
	switch ring {
	case RingConfig:
		return admit.Declared(o.Config.PinnedByWebhook())
	case RingZones:
		return guard.Declare(o.Guard)
	case RingPlans:
		return plansadmit.Declared()
	default:
		return admission.Declared{}
	}
}

// rings are those asked for, in the order of asking.
func (o Options) rings() ([]ring, error) {
	if err := CheckRings(o.Rings); err != nil {
		return nil, err
	}
	if slices.Contains(o.Namespaces, "") { // to a cache that is all of them
		return nil, errors.New("one of the namespaces to watch has no name")
	}
	o.Config.Namespaces, o.Zones.Namespaces, o.Plans.Namespaces, o.Fleet.Namespaces = o.Namespaces, o.Namespaces, o.Namespaces, o.Namespaces
	o.Config.By, o.Zones.By, o.Plans.By, o.Fleet.By = o.Identity, o.Identity, o.Identity, o.Identity
	o.Assemblage.Namespaces = o.Namespaces
	if o.Fleet.Assemblages == nil {
		o.Fleet.Facts = cluster.NewFactBook(o.Fleet.Now)
		o.Fleet.Assemblages, o.Fleet.Looks = o.assemblages, true
	}
	o.Guard.Now = o.Zones.Now
	o.Config.LeaseNamespace, o.Config.LeaseName = o.LeaseNamespace, o.LeaseName
	scales := scaling.Options{Now: o.Zones.Now, ClusterDomain: o.Guard.ClusterDomain, PodTimeout: o.Guard.PodTimeout}
	o.Config.Policies = &policy.Kinds{}
	o.Config.Zones = slices.Contains(o.Rings, RingZones)
	all := map[string]ring{
		RingConfig: {
			interests: config.Interests(o.Config), attributed: policy.Attributed(),
			setup:  func(ctx context.Context, mgr ctrl.Manager) error { return config.Setup(ctx, mgr, o.Config) },
			routes: func(mgr ctrl.Manager) ([]admission.Route, error) { return admit.Routes(mgr, o.admitOptions()) },
		},
		RingZones: {
			interests: slices.Concat(zones.Interests(), scaling.Interests(), preparation.Interests()),
			setup: func(ctx context.Context, mgr ctrl.Manager) error {
				return errors.Join(zones.Setup(ctx, mgr, o.Zones), scaling.Setup(ctx, mgr, scales), o.labelNamespaces(ctx, mgr))
			},
			routes: func(mgr ctrl.Manager) ([]admission.Route, error) { return guard.Routes(mgr, o.Guard) },
		},
		RingPlans: {
			reduced: plans.Reduced(),
			setup:   func(ctx context.Context, mgr ctrl.Manager) error { return plans.Setup(ctx, mgr, o.Plans) },
			routes: func(mgr ctrl.Manager) ([]admission.Route, error) {
				return plansadmit.Routes(mgr, o.Plans.Namespaces), nil
			},
		},
		RingAssemblage: {
			reduced: agent.Reduced(),
			setup:   func(ctx context.Context, mgr ctrl.Manager) error { return agent.Setup(ctx, mgr, o.Assemblage) },
		},
		RingFleet: {
			attributed: hub.Attributed(), reduced: agent.Reduced(),
			setup: func(ctx context.Context, mgr ctrl.Manager) error { return hub.Setup(ctx, mgr, o.Fleet) },
		},
	}
	var rings []ring
	for _, name := range o.Rings {
		r := all[name]
		r.name = name
		rings = append(rings, r)
	}
	return rings, nil
}

// labelNamespaces labels namespaces for a webhook, if there is a server to answer it.
func (o Options) labelNamespaces(ctx context.Context, mgr ctrl.Manager) error {
	if !o.Admission.Enabled {
		return nil
	}
	return preparation.Setup(ctx, mgr)
}

// assemblages adds what carries out on the hub what the fleet has assigned.
func (o Options) assemblages(ctx context.Context, mgr ctrl.Manager, clusters *cluster.Directory) error {
	return proxy.SetupHub(ctx, mgr, proxy.Options{Namespaces: o.Namespaces, Hub: o.Fleet.HubName, Now: o.Fleet.Now, Directory: clusters, Facts: o.Fleet.Facts, Network: o.ClusterNetwork})
}

// slimmed leaves out of objects who has written them, but for the kinds of which a ring
// wants to know, and what no ring reads of the kinds that are reduced. It is for
// all kinds, as one with a transform of its own must be installed.
func slimmed(rings []ring) toolscache.TransformFunc {
	kept, reduced := map[reflect.Type]bool{}, map[reflect.Type]toolscache.TransformFunc{}
	for _, r := range rings {
		for _, obj := range r.attributed {
			kept[reflect.TypeOf(obj)] = true
		}
		for _, i := range r.reduced {
			reduced[reflect.TypeOf(i.Object)] = kube.Transform([]kube.Interest{i})
		}
	}
	strip := cache.TransformStripManagedFields()
	return func(obj any) (any, error) {
		kind := reflect.TypeOf(obj)
		switch reduce := reduced[kind]; {
		case reduce != nil:
			return reduce(obj)
		case kept[kind]:
			return obj, nil
		default:
			return strip(obj)
		}
	}
}

// cached is how the cache holds the kinds that the rings look at. An object is
// kept whole as soon as one ring wants it.
func cached(rings []ring) map[client.Object]cache.ByObject {
	var kinds []reflect.Type
	interests := map[reflect.Type][]kube.Interest{}
	for _, r := range rings {
		for _, i := range r.interests {
			kind := reflect.TypeOf(i.Object)
			if interests[kind] == nil {
				kinds = append(kinds, kind)
			}
			interests[kind] = append(interests[kind], i)
		}
	}
	objects := make(map[client.Object]cache.ByObject, len(kinds))
	for _, kind := range kinds {
		objects[interests[kind][0].Object] = cache.ByObject{Transform: kube.Transform(interests[kind])}
	}
	return objects
}

// admitOptions are the options of the config ring that its webhook uses.
func (o Options) admitOptions() admit.Options {
	return admit.Options{
		Namespaces: o.Config.Namespaces, AllowCrossNamespace: o.Config.AllowCrossNamespace,
		PinNamespaces: o.Config.PinNamespaces, PinBy: o.Config.PinBy, Policies: o.Config.Policies, SuspendBy: o.Config.SuspendBy, Now: o.Config.Now,
	}
}
