package ops

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/outbound"
	"github.com/spillway-dev/spillway/internal/replay"
	"github.com/spillway-dev/spillway/internal/tracing"
	"github.com/spillway-dev/spillway/internal/zones/preparehook"
)

type managerFlags struct {
	cluster command.Cluster
	rings   command.RingFlags
	options manager.Options

	logFormat, logLevel string
	certSource          string
	allowed, refused    []string
	gateHosts           []string
	measures            bool
	notifies            bool
	version             bool
	defaultPolicy       bool
	defaultPolicySpec   string
	recordSize          string
	zap                 zapFlags
}

// NewManager returns the command manager.
func NewManager(env command.Environment) *cobra.Command {
	f := &managerFlags{}
	cmd := &cobra.Command{
		Use:     "manager",
		Short:   "Run the manager",
		Example: "  spillway manager --rings=config,zones --namespaces=shop --leader-elect=false",
		Long: "Run the manager until it receives a signal to stop.\n\n" +
			"Each flag can be given as an environment variable too: --max-rolling is\nSPILLWAY_MAX_ROLLING. The flag wins.",
		Args: command.None("everything is a flag"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.version {
				_, err := io.WriteString(cmd.OutOrStdout(), VersionLine())
				return err //nolint:wrapcheck // the output is gone
			}
			o, err := f.managerOptions(env)
			if err != nil {
				return err
			}
			cfg, err := f.cluster.RESTConfig()
			if err != nil {
				return err
			}
			if err := f.locate(&o); err != nil {
				return err
			}
			manager.LimitMemory(manager.Root(), os.Getenv, o.Log)
			return manager.Run(cmd.Context(), cfg, o)
		},
	}
	f.add(cmd.Flags())
	return cmd
}

func (f *managerFlags) add(flags *pflag.FlagSet) {
	f.cluster.AddKubeconfigFlags(flags)
	f.rings.Add(flags)
	o := &f.options
	command.RingsFlag(flags, &o.Rings)
	flags.BoolVar(&o.LeaderElect, "leader-elect", true, "elect a leader among the replicas by a Lease")
	flags.StringVar(&o.LeaseName, "leader-elect-id", manager.LeaseName, "name of the Lease")
	flags.StringVar(&o.LeaseNamespace, "leader-elect-namespace", "", "namespace of the Lease (default: the one that the manager runs in)")
	flags.DurationVar(&o.SyncPeriod, "sync-period", 10*time.Hour, "how often to reconcile everything even if nothing has changed")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8080", `address to serve metrics at; "0" disables it`)
	flags.BoolVar(&o.MetricsSecure, "metrics-secure", false, "serve metrics by HTTPS, to clients that may get /metrics; spillway install sets this, and installs what it needs")
	flags.StringVar(&o.ProbeAddress, "health-probe-bind-address", ":8081", `address to serve /healthz and /readyz at; "0" disables it`)
	flags.BoolVar(&f.defaultPolicy, "default-config-policy", false, "create the default ClusterConfigPolicy, once, by which one workload is rolled first for a change of config; spillway install sets this; not with --namespaces")
	flags.StringVar(&f.defaultPolicySpec, "default-config-policy-spec", "", `spec of that policy in JSON, over its defaults, such as {"onFailure":"Rollback"}`)
	flags.StringVar(&o.Fleet.HubName, "hub-name", "", "name of this hub on the clusters of its fleet, where several hubs manage the same clusters")
	flags.StringVar(&o.Plans.PipeImage, "pipe-image", "", "image of the container that keeps the Pod of a Pipe running (default: the ring's)")
	flags.StringVar(&o.Plans.DefaultServiceAccount, "default-service-account", "", "name of the ServiceAccount as which plans act whose Instance names none, in its namespace (default: the manager itself)")
	flags.StringSliceVar(&f.allowed, "allow-cluster-addresses", nil, "networks and addresses of the clusters of the fleet, the only ones to connect to (default: all but loopback, link-local and those refused)")
	flags.StringSliceVar(&f.refused, "refuse-cluster-addresses", nil, "networks and addresses not to connect to for a kubeconfig (default: the Services of this cluster)")
	flags.StringSliceVar(&f.gateHosts, "gate-hosts", nil, "names, addresses and networks that gates and Notifiers may reach, besides public addresses and the Services of their namespace; loopback and link-local ones only by their address (default: none)")
	flags.BoolVar(&f.notifies, "notify", true, "send messages about rollouts as Notifiers say")
	flags.BoolVar(&f.measures, "measure-gates", true, "measure gates as GateTemplates say; otherwise users and other programs decide all gates")
	f.addAdmission(flags)
	f.addZones(flags)
	flags.StringVar(&o.Record.Dir, "record-decisions", "", "folder to record in what is decided, and from what, for spillway replay and spillway upgrade --shadow (default: nothing is recorded)")
	flags.StringVar(&f.recordSize, "record-decisions-size", "64Mi", "how much of that to keep, the newest")
	flags.BoolVar(&o.Record.HideNames, "record-decisions-hide-names", false, "record no name of an object, and nothing that users say")
	flags.StringVar(&f.logFormat, "log-format", "text", "text or json")
	flags.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	f.addAliases(flags)
}

// addAdmission adds the flags of the server for webhooks. It is off unless asked
// for, as it is with rollout-operator: what it takes must be installed.
func (f *managerFlags) addAdmission(flags *pflag.FlagSet) {
	o := &f.options.Admission
	flags.BoolVar(&o.Enabled, "enable-webhooks", false, "serve the webhooks of the rings; spillway install sets this, and installs what they need")
	flags.StringVar(&o.Address, "webhook-bind-address", fmt.Sprintf(":%d", admission.Port), "address to serve webhooks at")
	flags.StringSliceVar(&o.Hosts, "webhook-host", nil, "names or IP addresses by which API servers call, separated by commas (default: that of the Service)")
	flags.StringVar(&o.Namespace, "webhook-namespace", "", "namespace of the webhooks' Service and Secret (default: the one that the manager runs in)")
	flags.StringVar(&f.certSource, "webhook-cert-source", string(admission.Generated), "where the certificate comes from: generated, cert-manager or files")
	flags.StringVar(&o.CertDir, "webhook-cert-dir", "", "folder with tls.crt, tls.key and ca.crt, for the sources cert-manager and files")
	flags.StringVar(&o.ClientCA, "webhook-client-ca", "", "file with the CAs of the certificates with which API servers call webhooks, if they are configured to; with one they need no key in the path")
	flags.StringSliceVar(&o.ClientNames, "webhook-client-names", nil, "common names of these certificates, separated by commas (default: all that the CAs have signed)")
	flags.StringSliceVar(&o.Only, "webhook-configurations", nil, "webhook configurations of users to inject the CA and the keys of paths into, separated by commas (default: all that are labeled)")
}

func (f *managerFlags) addZones(flags *pflag.FlagSet) {
	o := &f.options.Guard
	flags.StringVar(&o.ClusterDomain, "cluster-domain", preparehook.DefaultDomain, "DNS domain of the cluster, to call Pods by name that have no IP address yet")
	flags.DurationVar(&o.PodTimeout, "pod-timeout", preparehook.DefaultTimeout, "how long a Pod may take to answer the call that prepares its removal")
	failClosedFlag(flags, &o.FailClosed)
}

func failClosedFlag(flags *pflag.FlagSet, to *bool) {
	flags.BoolVar(to, "fail-closed", false, "deny a downscale if it is unknown whether it is forbidden or must be prepared; rollout-operator allows it")
}

// addAliases lets the flags of wave and rollout-operator answer as well. Those that
// have the same name here need nothing.
func (f *managerFlags) addAliases(flags *pflag.FlagSet) {
	o := &f.options
	flags.BoolVar(&o.LeaderElect, "leader-election", true, "")
	flags.StringVar(&o.LeaseName, "leader-election-id", manager.LeaseName, "")
	flags.StringVar(&o.LeaseNamespace, "leader-election-namespace", "", "")
	flags.BoolVar(&f.version, "version", false, "")
	f.zap.add(flags)
	for _, name := range append([]string{"leader-election", "leader-election-id", "leader-election-namespace", "version"}, zapNames...) {
		_ = flags.MarkHidden(name) // it exists
	}
}

// zapFlags are the flags of the log of wave.
type zapFlags struct {
	devel                             bool
	encoder, level, stack, timeFormat string
}

var zapNames = []string{"zap-devel", "zap-encoder", "zap-log-level", "zap-stacktrace-level", "zap-time-encoding"}

func (z *zapFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&z.devel, "zap-devel", false, "")
	flags.StringVar(&z.encoder, "zap-encoder", "", "")
	flags.StringVar(&z.level, "zap-log-level", "", "")
	flags.StringVar(&z.stack, "zap-stacktrace-level", "", "") // no stack traces are logged
	flags.StringVar(&z.timeFormat, "zap-time-encoding", "", "")
}

// translate sets the format and the level of the log, where wave's flags name them.
func (z *zapFlags) translate(format, level *string) error {
	if z.devel {
		*level = "debug"
	}
	switch z.encoder {
	case "":
	case "console":
		*format = "text"
	default:
		*format = z.encoder
	}
	if n, err := strconv.Atoi(z.level); err == nil && n > 0 {
		*level = "debug" // a verbosity
		return nil
	}
	switch z.level {
	case "":
	case "debug", "info", "warn", "error":
		*level = z.level
	case "panic":
		*level = "error"
	default:
		return fmt.Errorf("--zap-log-level: %q is not known; use --log-level with debug, info, warn or error", z.level)
	}
	return nil
}

// locate fills in the namespace that this runs in, where it is needed, and
// checks what could not be checked without.
func (f *managerFlags) locate(o *manager.Options) error {
	var needed []*string
	if (o.LeaderElect || o.Config.SharesBudget() || o.Config.DefaultPolicy != nil) && o.LeaseNamespace == "" {
		needed = append(needed, &o.LeaseNamespace)
	}
	if o.Admission.Enabled && o.Admission.Namespace == "" {
		needed = append(needed, &o.Admission.Namespace)
	}
	for _, namespace := range needed {
		own, err := f.cluster.ResolveNamespace()
		if err != nil {
			return err
		}
		*namespace = own
	}
	if o.Admission.Enabled {
		return o.Admission.Validate()
	}
	return nil
}

// checkSizes checks how long, and how much, something may be.
func (f *managerFlags) checkSizes(o *manager.Options) error {
	size, err := resource.ParseQuantity(f.recordSize)
	o.Record.Size = size.Value()
	switch {
	case err != nil || size.Value() < replay.MinSize:
		return fmt.Errorf("--record-decisions-size: %q is no size of at least 1Mi; use one such as 64Mi", f.recordSize)
	case o.Guard.PodTimeout <= 0:
		return fmt.Errorf("--pod-timeout: %s leaves a Pod no time; use a duration such as 5s", o.Guard.PodTimeout)
	case o.SyncPeriod < 0:
		return fmt.Errorf("--sync-period: %s is negative; use a duration such as 10h", o.SyncPeriod)
	}
	return nil
}

func (f *managerFlags) managerOptions(env command.Environment) (manager.Options, error) {
	if err := f.zap.translate(&f.logFormat, &f.logLevel); err != nil {
		return manager.Options{}, err
	}
	log, err := newLog(env.Err, f.logFormat, f.logLevel)
	if err != nil {
		return manager.Options{}, err
	}
	o := f.options
	if err := manager.CheckRings(o.Rings); err != nil {
		return manager.Options{}, err
	}
	f.rings.WatchAsReloader(env.Lookup)
	if o.Config, err = f.rings.Options(env.Now); err != nil {
		return manager.Options{}, err
	}
	if o.Config.DefaultPolicy, err = f.policyToCreate(); err != nil {
		return manager.Options{}, err
	}
	if pinned := o.Config.PinnedByWebhook(); !pinned.IsEmpty() && !o.Admission.Enabled {
		return manager.Options{}, errors.New("--pin-by: webhook needs the webhooks to be served; add --enable-webhooks, or use policy")
	}
	o.Namespaces, o.Zones.Now = o.Config.Namespaces, env.Now
	if err := errors.Join(f.checkSizes(&o), checkNames(&o)); err != nil {
		return manager.Options{}, err
	}
	o.Log, o.Version = log, command.CurrentVersion()
	o.Record.Log, o.Record.Version = log, o.Version
	for name, instead := range f.rings.ReloaderNotes() {
		log.Info("a flag of Reloader has no effect", "flag", "--"+name, "instead", instead)
	}
	if rate := o.Config.UpdateRate; rate == 0 || math.IsInf(rate, 1) {
		log.Info("the update rate is off: 0 and Inf both mean no limit", "update-rate", f.rings.UpdateRate)
	}
	o.Plans.Now, o.Fleet.Now, o.Assemblage.Now, o.Admission.Now = env.Now, env.Now, env.Now, env.Now
	o.Admission.Source = admission.Source(f.certSource)
	o.Gates.Now, o.Gates.Off = env.Now, !f.measures
	o.Notify.Now, o.Notify.Off = env.Now, !f.notifies
	identify(&o, env.Lookup, log)
	otel.SetLogger(log)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Error(err, "traces") }))
	if o.Gates.Hosts, err = outbound.ParseHosts(f.gateHosts); err != nil {
		return manager.Options{}, fmt.Errorf("--gate-hosts: %w", err)
	}
	o.Own = &outbound.Own{Host: os.Getenv("KUBERNETES_SERVICE_HOST")}
	o.ClusterNetwork, err = f.network(o.Own)
	return o, err
}

// identify says where traces go, and which replica this is. A rollout is worth more than either.
func identify(o *manager.Options, lookup func(string) (string, bool), log logr.Logger) {
	var err error
	if o.Traces.Receiver, err = tracing.ReceiverOf(lookup); err != nil {
		log.Error(err, "no traces are written")
	}
	if o.Identity, err = os.Hostname(); err != nil {
		log.Error(err, "records do not say which replica has decided")
	}
}

// policyToCreate is the default policy of the installation, nil if it is to have none.
func (f *managerFlags) policyToCreate() (*v1alpha1.ClusterConfigPolicy, error) {
	p, err := policy.DefaultWith(f.defaultPolicySpec)
	if err != nil {
		return nil, fmt.Errorf("--default-config-policy-spec: %w", err)
	}
	if !f.defaultPolicy {
		return nil, nil //nolint:nilnil // none is created
	}
	return p, nil
}

// checkNames refuses names and addresses with which the manager would start, and never work.
func checkNames(o *manager.Options) error {
	return errors.Join(command.CheckName("hub-name", o.Fleet.HubName), command.CheckName("leader-elect-id", o.LeaseName), command.CheckName("default-service-account", o.Plans.DefaultServiceAccount),
		command.CheckName("leader-elect-namespace", o.LeaseNamespace), command.CheckName("webhook-namespace", o.Admission.Namespace),
		command.CheckAddress("metrics-bind-address", o.MetricsAddress), command.CheckAddress("health-probe-bind-address", o.ProbeAddress),
		command.CheckAddress("webhook-bind-address", o.Admission.Address))
}

// network is where the kubeconfigs of tenants may lead.
func (f *managerFlags) network(own *outbound.Own) (*cluster.Network, error) {
	n := &cluster.Network{Own: own}
	var err error
	if n.Allowed, err = cluster.ParseNetworks(f.allowed); err != nil {
		return nil, fmt.Errorf("--allow-cluster-addresses: %w", err)
	}
	if len(f.refused) == 0 {
		return n, nil
	}
	n.Own = nil
	if n.Refused, err = cluster.ParseNetworks(f.refused); err != nil {
		return nil, fmt.Errorf("--refuse-cluster-addresses: %w", err)
	}
	return n, nil
}

func newLog(w io.Writer, format, level string) (logr.Logger, error) {
	options := &slog.HandlerOptions{ReplaceAttr: shorten}
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return logr.Logger{}, fmt.Errorf("--log-level: %q is not known; use debug, info, warn or error", level)
	}
	options.Level = l
	if l == slog.LevelDebug {
		options.Level = slog.Level(-1) // what the rings tell beyond info is at V(1)
	}
	switch format {
	case "text":
		return logr.FromSlogHandler(slog.NewTextHandler(w, options)), nil
	case "json":
		return logr.FromSlogHandler(slog.NewJSONHandler(w, options)), nil
	default:
		return logr.Logger{}, fmt.Errorf("--log-format: %q is not known; use text or json", format)
	}
}

// shorten leaves out of each line what says nothing: there is one request for
// all workloads, and its name is no news. What users have written may be in any value,
// also in the answer of an API server, and is cut.
func shorten(_ []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case "reconcileID", "controllerGroup", "controllerKind":
		return slog.Attr{}
	case slog.LevelKey:
		return slog.String(a.Key, strings.SplitN(a.Value.String(), "+", 2)[0])
	}
	if text, ok := textOf(a.Value); ok && len(text) > message.SentenceLength {
		return slog.String(a.Key, message.Sentence(text))
	}
	return a
}

// textOf returns what is written of a value, false for one that is never long.
func textOf(v slog.Value) (text string, ok bool) {
	if v.Kind() == slog.KindString {
		return v.String(), true
	}
	switch value := v.Any().(type) {
	case error:
		return value.Error(), true
	case fmt.Stringer: // such as a namespaced name
		return value.String(), v.Kind() == slog.KindAny
	default:
		return "", false
	}
}
