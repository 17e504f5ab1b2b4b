// Package manager assembles the rings into one controller manager: cache,
// client, leader election, probes and metrics.
//
// Stopping it finishes the pass that is under way, as far as the API server
// answers, and releases the lease, so that another replica continues immediately.
package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllers "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/fleet/agent"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/gates"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/notify"
	"github.com/spillway-dev/spillway/internal/outbound"
	"github.com/spillway-dev/spillway/internal/plans"
	"github.com/spillway-dev/spillway/internal/replay"
	state "github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/tracing"
	"github.com/spillway-dev/spillway/internal/zones"
	"github.com/spillway-dev/spillway/internal/zones/guard"
)

const (
	// passTimeout bounds one run of a controller, so that an API server that
	// does not answer is noticed.
	passTimeout = 2 * time.Minute
	// hangs is how long a pass is under way that does not end any more. It is much
	// longer than passTimeout, so that a slow machine is not taken for a dead one.
	hangs = 5 * passTimeout
	// stopTimeout is how long the manager may take to stop once it is asked to.
	stopTimeout = 20 * time.Second
)

// LeaseName is the default name of the Lease by which replicas elect a leader.
const LeaseName = "spillway-manager"

// Options are the choices of the user who runs the manager.
type Options struct {
	// Rings are those to run.
	Rings []string
	// Namespaces are those to watch, all if empty.
	Namespaces []string
	// Config are the options of the config ring. Its Namespaces are set to the manager's.
	Config config.Options
	// Zones are the options of the zones ring. Its Namespaces are set to the manager's.
	Zones zones.Options
	// Guard are the options of what the zones ring does about replicas and evictions.
	// Its clock is set to that of Zones.
	Guard guard.Options
	// Plans are the options of the plans ring. Its Namespaces are set to the manager's.
	Plans plans.Options
	// Fleet are the options of the fleet ring. Its Namespaces are set to the manager's.
	Fleet hub.Options
	// ClusterNetwork restricts where the kubeconfigs of clusters may lead the fleet ring,
	// unless it is nil.
	ClusterNetwork *cluster.Network
	// Own is what of the cluster the requests of users do not reach; optional. The manager reads
	// the ServiceCIDRs for it.
	Own *outbound.Own
	// Assemblage are the options of the assemblage ring. Its Namespaces are set to the
	// manager's.
	Assemblage agent.Options
	// Gates are the options of the controller that measures gates. Its clock is set to that
	// of a ring, unless it has one.
	Gates gates.Options
	// Notify are the options of the controller that sends messages. Its rings, namespaces and
	// hosts are set to the manager's and those of gates, and its clock as that of gates.
	Notify notify.Options
	// Traces are the options of what writes rollouts as traces. Its rings, namespaces and clock
	// are set as those of Notify.
	Traces tracing.Options
	// Admission are the options of the server for the rings' webhooks.
	Admission admission.Options
	// LeaderElect makes replicas of one name elect a leader; the others wait.
	LeaderElect bool
	// LeaseName and LeaseNamespace identify the Lease. An empty namespace is the
	// one that the manager runs in.
	LeaseName, LeaseNamespace string
	// Identity is the host name of the manager, with which its records name it; optional.
	Identity string
	// SyncPeriod is how often everything is observed although nothing has
	// changed. Zero is controller-runtime's own.
	SyncPeriod time.Duration
	// MetricsSecure serves metrics by HTTPS, to clients that the API server authenticates
	// and that may get /metrics.
	MetricsSecure bool
	// MetricsAddress and ProbeAddress are where to serve; "0" is nowhere.
	MetricsAddress, ProbeAddress string
	// Record says where decisions are recorded, to decide them again with another version; nowhere if
	// it has no folder.
	Record replay.Options
	// Version is part of the user agent.
	Version string
	// Log is where to log to.
	Log logr.Logger
	// Observed stands in for the manager, which has a cache with these options, in tests that
	// wait until it has observed what they did. Optional.
	Observed func(ctrl.Manager, cache.Options) ctrl.Manager
}

// Run runs the manager until the context ends.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	err := run(ctx, cfg, o)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) { // a stop while it starts is no failure
		o.Log.Info("stopped before it had started", "cause", err.Error())
		return nil
	}
	return err
}

func run(ctx context.Context, cfg *rest.Config, o Options) error {
	rings, err := o.rings()
	if err != nil {
		return err
	}
	log.SetLogger(o.Log)
	if o.Record.Dir != "" {
		end, err := replay.Start(o.Record)
		if err != nil {
			return err
		}
		defer end()
	}
	kinds, err := kube.NewScheme()
	if err != nil {
		return err
	}
	o.Log = quietStop(ctx, o.Log)
	options := o.controllerRuntime(kinds, rings)
	mgr, err := ctrl.NewManager(clientConfig(cfg, o), options)
	if err != nil {
		return fmt.Errorf("set up the manager: %w", err)
	}
	if o.Observed != nil {
		mgr = o.Observed(mgr, options.Cache)
	}
	if err := errors.Join(addProbes(mgr), releaseMemory(mgr)); err != nil {
		return err
	}
	if o.Own != nil {
		o.Own.Services = mgr.GetAPIReader()
	}
	if err := o.setUp(ctx, mgr, rings); err != nil {
		return err
	}
	o.Log.Info("starting", "version", o.Version, "rings", strings.Join(o.Rings, ","), "namespaces", namespacesText(o.Namespaces))
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the manager: %w", err)
	}
	o.Log.Info("stopped")
	return nil
}

// setUp adds to a manager what runs in it.
func (o Options) setUp(ctx context.Context, mgr ctrl.Manager, rings []ring) error {
	for _, r := range rings {
		if err := r.setup(ctx, mgr); err != nil {
			return fmt.Errorf("set up the %s ring: %w", r.name, err)
		}
	}
	if !o.Gates.Off && slices.ContainsFunc(o.Rings, HasGates) {
		if err := gates.Setup(ctx, mgr, o.gates()); err != nil {
			return fmt.Errorf("set up the gates: %w", err)
		}
	}
	if !o.Notify.Off && slices.ContainsFunc(o.Rings, HasGates) {
		if err := notify.Setup(ctx, mgr, o.notify()); err != nil {
			return fmt.Errorf("set up the Notifiers: %w", err)
		}
	}
	if err := tracing.Setup(ctx, mgr, o.traces()); err != nil {
		return fmt.Errorf("set up the traces: %w", err)
	}
	if err := o.addAdmission(mgr, rings); err != nil {
		return fmt.Errorf("set up the webhooks: %w", err)
	}
	return nil
}

// clientConfig lifts the limit on the client's side: the API server's priority
// and fairness limits what it can serve.
func clientConfig(cfg *rest.Config, o Options) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	cfg.UserAgent = "spillway/" + o.Version
	cfg.WarningHandlerWithContext = rest.NoWarnings{} // they are for the user who wrote the manifest
	measured(cfg)
	return cfg
}

func (o Options) controllerRuntime(kinds *runtime.Scheme, rings []ring) ctrl.Options {
	yes, stop := true, stopTimeout
	options := ctrl.Options{
		Scheme:                        kinds,
		Logger:                        o.Log,
		Cache:                         cacheOptions(o, rings),
		Client:                        client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &yes}},
		Controller:                    controllers.Controller{ReconciliationTimeout: passTimeout, SkipNameValidation: &yes},
		Metrics:                       o.metrics(),
		HealthProbeBindAddress:        o.ProbeAddress,
		LeaderElection:                o.LeaderElect,
		LeaderElectionID:              o.LeaseName,
		LeaderElectionNamespace:       o.LeaseNamespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &stop,
	}
	if o.SyncPeriod > 0 {
		options.Cache.SyncPeriod = &o.SyncPeriod
	}
	return options
}

// cacheOptions keeps the kinds without an interest of their own, except for
// managedFields.
func cacheOptions(o Options, rings []ring) cache.Options {
	return cache.Options{
		ByObject: cached(rings), DefaultNamespaces: kube.InNamespaces(o.Namespaces), DefaultTransform: slimmed(rings),
	}
}

func namespacesText(names []string) string {
	if len(names) == 0 {
		return "all"
	}
	return strings.Join(names, ",")
}

// addProbes makes the manager alive once it serves, as long as no pass hangs; and ready
// once it has seen the cluster. An API server that is away ends passes, and delays none.
func addProbes(mgr ctrl.Manager) error {
	synced := func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the caches are not synced yet")
		}
		return nil
	}
	alive := func(*http.Request) error { return state.UnderWay.Hanging(hangs) }
	return errors.Join(mgr.AddHealthzCheck("passes", alive), mgr.AddReadyzCheck("caches", synced))
}
