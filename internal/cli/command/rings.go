package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/reloader"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// RingFlags are the flags that decide what the rings do. The commands that
// explain have them too, because they decide by the same code.
type RingFlags struct {
	namespaces             []string
	UpdateRate             string
	updateBurst            int
	maxRolling             int
	maxRollingPerNamespace int
	coalesceWindow         time.Duration
	stopOnFailure          bool
	allowCrossNamespace    bool
	suspendBy              string
	pinNamespaces          []string
	pinSelector            string
	pinBy                  string
	reloader               reloaderFlags
}

// Add adds the flags.
func (f *RingFlags) Add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.namespaces, "namespaces", nil, "namespaces to watch, separated by commas (default: all)")
	flags.StringVar(&f.UpdateRate, "update-rate", "0", `workloads to roll per second; 0 or "Inf" is no limit`)
	flags.IntVar(&f.updateBurst, "update-burst", 100, "workloads that may be rolled immediately before --update-rate applies")
	flags.IntVar(&f.maxRolling, "max-rolling", 0, "workloads that may be rolling at a time; 0 is no limit")
	flags.IntVar(&f.maxRollingPerNamespace, "max-rolling-per-namespace", 0, "workloads that may be rolling at a time in each namespace; 0 is no limit")
	flags.DurationVar(&f.coalesceWindow, "coalesce-window", time.Second, "changes that follow one another within this time are one roll")
	flags.BoolVar(&f.stopOnFailure, "stop-on-config-failure", true, "roll no workload for config with which another one has failed")
	flags.StringVar(&f.suspendBy, "suspend-by", string(workload.SuspendByGate), "how a new workload whose config is missing is kept from running: scheduling-gate, scheduler (as wave does) or none")
	flags.StringSliceVar(&f.pinNamespaces, "pin-namespaces", nil, "namespaces whose workloads may keep the config of each revision, with spillway.dev/pin-config; * for all that are watched")
	flags.StringVar(&f.pinSelector, "pin-namespace-selector", "", "labels of the namespaces whose workloads may do so, such as team=shop, instead of --pin-namespaces")
	PinByFlag(flags, &f.pinBy)
	f.reloader.add(flags)
	flags.BoolVar(&f.allowCrossNamespace, "allow-cross-namespace", false, "let workloads use config of other namespaces that is not shared with them")
}

// PinByFlag adds the flag that says what points Pods at the config of their revision.
func PinByFlag(flags *pflag.FlagSet, by *string) {
	flags.StringVar(by, "pin-by", string(pin.ByPolicy), "what points Pods at the config of their revision where pins are on: policy, which needs Kubernetes 1.36, or webhook")
}

// Options checks the flags and turns them into options of the config ring.
func (f *RingFlags) Options(now func() time.Time) (config.Options, error) {
	rate, err := f.rate()
	if err != nil {
		return config.Options{}, err
	}
	for name, n := range map[string]int{"max-rolling": f.maxRolling, "max-rolling-per-namespace": f.maxRollingPerNamespace} {
		if n < 0 {
			return config.Options{}, fmt.Errorf("--%s: %d is negative; use 0 for no limit", name, n)
		}
	}
	if f.updateBurst < 1 {
		return config.Options{}, fmt.Errorf("--update-burst: %d would never let anything pass; use 1 or more", f.updateBurst)
	}
	if f.coalesceWindow < 0 {
		return config.Options{}, fmt.Errorf("--coalesce-window: %s is negative; use 0s to roll immediately", f.coalesceWindow)
	}
	for _, namespace := range f.namespaces {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return config.Options{}, fmt.Errorf("--namespaces: %q is not a namespace; separate names by commas, without spaces", namespace)
		}
	}
	ways := []workload.SuspendBy{workload.SuspendByGate, workload.SuspendByScheduler, workload.SuspendNot}
	if !slices.Contains(ways, workload.SuspendBy(f.suspendBy)) {
		return config.Options{}, fmt.Errorf("--suspend-by: %q is not known; use scheduling-gate, scheduler or none", f.suspendBy)
	}
	if !slices.Contains([]pin.By{pin.ByPolicy, pin.ByWebhook}, pin.By(f.pinBy)) {
		return config.Options{}, fmt.Errorf("--pin-by: %q is not known; use %s or %s", f.pinBy, pin.ByPolicy, pin.ByWebhook)
	}
	slices.Sort(f.namespaces)
	f.namespaces = slices.Compact(f.namespaces)
	pins, err := pin.Flags{Names: f.pinNamespaces, Selector: f.pinSelector, Watched: f.namespaces, WatchedBy: "--namespaces"}.Namespaces()
	if err != nil {
		return config.Options{}, err
	}
	reloaded, err := f.reloader.options(now())
	if err != nil {
		return config.Options{}, err
	}
	if reloaded != nil && reloaded.Namespaces != nil && len(f.namespaces) > 0 {
		return config.Options{}, errors.New("--namespace-selector: the labels of namespaces are not read with --namespaces; use one of them")
	}
	return config.Options{
		Reloader: reloaded, RunCronJobs: f.reloader.runsCronJobs(), KeepRollouts: f.reloader.rollouts == "false", ReloaderMetrics: f.reloader.metrics,
		Options: decision.Options{
			UpdateRate: rate, UpdateBurst: f.updateBurst, CoalesceWindow: f.coalesceWindow,
			KeepGoing: !f.stopOnFailure, RecordEvery: decision.RecordEvery,
			MaxRolling: f.maxRolling, MaxRollingPerNamespace: f.maxRollingPerNamespace,
		},
		Namespaces: f.namespaces, PinNamespaces: pins, PinBy: pin.By(f.pinBy), AllowCrossNamespace: f.allowCrossNamespace, SuspendBy: workload.SuspendBy(f.suspendBy), Now: now,
	}, nil
}

func (f *RingFlags) rate() (float64, error) {
	rate, err := strconv.ParseFloat(f.UpdateRate, 64)
	if err != nil || rate < 0 || math.IsNaN(rate) {
		return 0, fmt.Errorf(`--update-rate: %q is not a rate; use a number such as 0.5, or 0 or "Inf" for no limit`, f.UpdateRate)
	}
	return rate, nil
}

// ShownRingsFlag adds the flag that chooses the rings to show.
func ShownRingsFlag(flags *pflag.FlagSet, rings *[]string) {
	flags.StringSliceVar(rings, "rings", nil, "only these rings: "+strings.Join(describe.Rings(), ", "))
}

// CheckShownRings refuses names that are of no ring, and the flag without one.
func CheckShownRings(flags *pflag.FlagSet, names []string) error {
	if len(names) == 0 && flags.Changed("rings") {
		return errors.New("--rings: name at least one ring, such as config")
	}
	for _, name := range names {
		if !slices.Contains(describe.Rings(), name) {
			return fmt.Errorf("--rings: there is no ring %q; choose from %s", name, strings.Join(describe.Rings(), ", "))
		}
	}
	return nil
}

// RingsFlag adds the flag that chooses rings.
func RingsFlag(flags *pflag.FlagSet, rings *[]string) {
	flags.StringSliceVar(rings, "rings", manager.Rings(), "rings to run, separated by commas")
}

// ReloaderAnnotations is the flag that has annotations of Reloader read.
const ReloaderAnnotations = "reloader-annotations"

// ReloaderCronJobs is the flag that has CronJobs run for changes of their config.
const ReloaderCronJobs = "reloader-cronjobs"

// ReloaderMetrics is the flag that has rolls counted by the names of Reloader.
const ReloaderMetrics = "reloader-metrics"

// reloaderFlags are those of Reloader that have the same effect here, and the one that has its annotations read.
type reloaderFlags struct {
	on, all, classes bool
	cronJobs         bool
	metrics          bool
	onCreate         string
	onDelete         string
	namespaces       []string
	resources        []string
	workloads        []string
	labels           []string
	selector         []string
	webhook          string
	rollouts         string
	// set are all of them but the one that has annotations read: also those that have no effect here, and those that
	// rename annotations.
	set *pflag.FlagSet
}

// add adds the flags. Those of Reloader are for who brings its arguments along, and are in no list.
func (f *reloaderFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.on, ReloaderAnnotations, false, "roll workloads also by the annotations of Reloader, and restart Rollouts of Argo; its flags that rename annotations and leave objects out are accepted, too")
	of, shown := pflag.NewFlagSet("reloader", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	shown.BoolVar(&f.cronJobs, ReloaderCronJobs, false, "start a run of CronJobs whose config changes, where annotations of Reloader on them ask for it; without it, their next run has the new config")
	shown.BoolVar(&f.metrics, ReloaderMetrics, false, "count and report rolls by annotations of Reloader by the names of its metrics and Events, too")
	of.BoolVar(&f.all, "auto-reload-all", false, "roll all workloads that say nothing, as Reloader does")
	of.StringSliceVar(&f.namespaces, "namespaces-to-ignore", nil, "namespaces whose annotations of Reloader are not read")
	of.StringSliceVar(&f.resources, "resources-to-ignore", nil, "configMaps or secrets, if they roll nothing")
	of.StringSliceVar(&f.workloads, "ignored-workload-types", nil, "jobs, which are not rolled anyway, or cronjobs, which are not run then")
	of.StringSliceVar(&f.labels, "resource-label-selector", nil, "labels of the objects that roll workloads")
	of.StringVar(&f.onCreate, "reload-on-create", "false", "roll workloads also for an object that appears")
	of.StringVar(&f.onDelete, "reload-on-delete", "false", "roll workloads also for an object that goes")
	of.BoolVar(&f.classes, "enable-csi-integration", false, "count SecretProviderClasses")
	of.StringSliceVar(&f.selector, "namespace-selector", nil, "labels of the namespaces whose annotations of Reloader are read")
	of.StringVar(&f.webhook, vocabulary.ReloaderWebhook, "", "refused: no URL is called in place of a roll")
	of.StringVar(&f.rollouts, vocabulary.ReloaderRollouts, "", "false leaves Rollouts of Argo alone")
	of.Lookup(vocabulary.ReloaderRollouts).NoOptDefVal = "true"
	for _, flag := range vocabulary.ReloaderFlags() {
		if flag.Vain {
			of.String(flag.Name, "", "without effect")
			of.Lookup(flag.Name).NoOptDefVal = "true"
		}
	}
	for _, k := range vocabulary.ReloaderKeys() {
		if k.Flag != "" {
			of.String(k.Flag, k.Name, "the annotation that is read as "+k.Name)
		}
	}
	of.VisitAll(func(flag *pflag.Flag) { flag.Hidden = true })
	of.AddFlagSet(shown)
	flags.AddFlagSet(of)
	f.set = of
}

// isGiven reports whether a flag of the set has another value than its default.
func isGiven(f *pflag.Flag) bool { return f.Value.String() != f.DefValue }

// options are nil if no annotation of Reloader is read.
func (f *reloaderFlags) options(now time.Time) (*reloader.Options, error) {
	o := &reloader.Options{Names: map[string]string{}, AutoAll: f.all, IgnoredNamespaces: f.namespaces, Classes: f.classes, Since: now}
	if !f.on {
		return nil, f.unread()
	}
	for _, k := range vocabulary.ReloaderKeys() {
		if flag := f.set.Lookup(k.Flag); flag != nil && isGiven(flag) {
			o.Names[k.Name] = flag.Value.String()
		}
	}
	if f.webhook != "" {
		return nil, fmt.Errorf("--%s: no URL is called in place of a roll; remove it, and create a Notifier, which sends a message about each", vocabulary.ReloaderWebhook)
	}
	if err := f.scope(o); err != nil {
		return nil, err
	}
	for _, of := range f.workloads {
		if of != "jobs" && of != "cronjobs" {
			return nil, fmt.Errorf("--ignored-workload-types: %q is not known; use jobs or cronjobs", of)
		}
	}
	for _, flag := range []struct {
		name, value string
		is          *bool
	}{{"reload-on-create", f.onCreate, &o.OnCreate}, {"reload-on-delete", f.onDelete, &o.OnDelete}, {vocabulary.ReloaderRollouts, cmp.Or(f.rollouts, "true"), new(bool)}} {
		if flag.value != "true" && flag.value != "false" {
			return nil, fmt.Errorf("--%s: %q is not known; use true or false", flag.name, flag.value)
		}
		*flag.is = flag.value == "true"
	}
	return o, nil
}

func (f *reloaderFlags) scope(o *reloader.Options) (err error) {
	if o.IgnoredKinds, err = reloader.ParseIgnored(f.resources); err != nil {
		return fmt.Errorf("--resources-to-ignore: %w", err)
	}
	if o.Selector, err = reloader.ParseSelector(f.labels); err != nil {
		return fmt.Errorf("--resource-label-selector: %w", err)
	}
	selector, err := reloader.ParseSelector(f.selector)
	if err != nil {
		return fmt.Errorf("--namespace-selector: %w", err)
	}
	if selector != nil {
		o.Namespaces = &reloader.Selected{Selector: selector}
	}
	return nil
}

// ReloaderNotes say of flags of Reloader that are given and have no effect what does the same, by their names.
func (f *RingFlags) ReloaderNotes() map[string]string {
	notes := map[string]string{}
	for _, flag := range vocabulary.ReloaderFlags() {
		if flag.Vain && isGiven(f.reloader.set.Lookup(flag.Name)) {
			notes[flag.Name] = flag.Differs
		}
	}
	return notes
}

// WatchAsReloader has the namespace watched that Reloader would watch, unless flags name some.
func (f *RingFlags) WatchAsReloader(lookup func(string) (string, bool)) {
	if namespace, _ := lookup(vocabulary.ReloaderNamespace); f.reloader.on && len(f.namespaces) == 0 && namespace != "" {
		f.namespaces = []string{namespace}
	}
}

func (f *reloaderFlags) runsCronJobs() bool {
	return f.cronJobs && !slices.Contains(f.workloads, "cronjobs")
}

// unread is an error if a flag of Reloader has no effect, because its annotations are not read.
func (f *reloaderFlags) unread() error {
	var given []string
	f.set.VisitAll(func(flag *pflag.Flag) {
		if isGiven(flag) {
			given = append(given, flag.Name)
		}
	})
	if len(given) == 0 {
		return nil
	}
	return fmt.Errorf("--%s has no effect: annotations of Reloader are not read; add --%s", strings.Join(given, ", --"), ReloaderAnnotations)
}

// Query is what explain and status have in common.
type Query struct {
	Env     Environment
	Cluster Cluster
	Rings   RingFlags
	Output  string
	flags   *pflag.FlagSet
	// manager is what was seen of the one of the namespace, by which reader; nil until [Query.Connect]
	// or [Query.AdoptInstalled], and of a user who may not look.
	manager *describe.Manager
	reader  client.Reader
	// namespace is that which was asked about.
	namespace string
}

// NoManager is why nothing of what is under way is carried out, empty if it is or if that may not be
// seen. What is shown as next would be a lie without it. A manager that is not installed for the namespace
// may run elsewhere, and is missed only if something is under way. Until is when to ask again; zero for never.
func (a *Query) NoManager(ctx context.Context, underWay bool) (why string, until time.Time) {
	if a.manager == nil {
		return "", time.Time{}
	}
	m := *a.manager
	if !m.Watches && !underWay || m.Look(ctx, a.reader, a.Env.Now()) != nil {
		return "", m.Until
	}
	return m.Absence(a.namespace), m.Until
}

// TellNoManager tells why nothing of what is under way is carried out, and returns it as [Query.NoManager] does.
func (a *Query) TellNoManager(ctx context.Context, underWay bool) string {
	why, _ := a.NoManager(ctx, underWay)
	if why != "" {
		_, _ = fmt.Fprintf(a.Env.Err, "note: no manager is at work: %s; what waits or moves goes on once one is\n", why)
	}
	return why
}

// NewQuery adds the flags of a query to a command, whose output has some more forms.
func NewQuery(env Environment, cmd *cobra.Command, forms ...string) *Query {
	a := NewUnprinted(env, cmd)
	OutputFlag(cmd, &a.Output, forms...)
	return a
}

// NewUnprinted is [NewQuery] of a command that prints no answer.
func NewUnprinted(env Environment, cmd *cobra.Command) *Query {
	a := &Query{Env: env, flags: cmd.Flags()}
	a.Cluster.AddNamespacedFlags(cmd.Flags())
	a.Rings.Add(cmd.Flags())
	return a
}

// Connect returns a reader, and the options by which the manager decides: those
// of the manager that is installed, unless they are given here.
func (a *Query) Connect(ctx context.Context, namespace string) (client.Client, config.Options, error) {
	reader, err := a.Cluster.Client()
	if err != nil {
		return nil, config.Options{}, err
	}
	if err := a.AdoptInstalled(ctx, reader, namespace); err != nil {
		return nil, config.Options{}, err
	}
	options, err := a.Rings.Options(a.Env.Now)
	return reader, options, err
}

// Mirror keeps up with a namespace, with all if it is empty, until the context ends. What the
// config ring reads is begun immediately, if it will be.
func (a *Query) Mirror(ctx context.Context, live client.Client, namespace string, readsConfig bool) (*snapshot.Watched, error) {
	config, err := a.Cluster.RESTConfig()
	if err != nil {
		return nil, err
	}
	mirror, err := snapshot.Watch(ctx, config, live, namespace)
	if err == nil && readsConfig {
		mirror.Begin(ctx, &appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{}, &corev1.ConfigMap{})
	}
	return mirror, err
}

// AdoptInstalled takes over the flags of the manager's Deployment, of the one
// that watches the namespace if there are several. Where none can be seen, the
// defaults have to do.
func (a *Query) AdoptInstalled(ctx context.Context, reader client.Client, namespace string) error {
	m, err := describe.ManagerOf(ctx, reader, namespace)
	if err != nil {
		return nil //nolint:nilerr // not being allowed to look is not the asker's fault
	}
	a.manager, a.reader, a.namespace = &m, reader, namespace
	if m.Deployment == nil {
		return nil
	}
	others, pins := a.flags.Changed("namespaces"), a.flags.Changed("pin-namespaces") || a.flags.Changed("pin-namespace-selector")
	for _, arg := range manifests.ArgumentsOf(m.Deployment) {
		if err := a.adopt(arg); err != nil {
			return err
		}
	}
	if others && !pins { // its pins are for the namespaces that it watches itself
		a.Rings.pinSelector = ""
		a.Rings.pinNamespaces = slices.DeleteFunc(a.Rings.pinNamespaces, func(name string) bool {
			return name != pin.All && !slices.Contains(a.Rings.namespaces, name)
		})
	}
	return nil
}

func (a *Query) adopt(arg string) error {
	name, value, ok := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
	f := a.flags.Lookup(name)
	if !ok || f == nil || f.Changed || name == "kubeconfig" || name == "rings" { // which of them are shown is not the manager's to say
		return nil
	}
	if err := a.flags.Set(name, value); err != nil {
		return fmt.Errorf("the installed manager runs with %s: %s", arg, valueError(f, value, err))
	}
	return nil
}
