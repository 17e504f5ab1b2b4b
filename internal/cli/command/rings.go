package command

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/manager"
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

// pinWatched leaves out pins of namespaces that are not among those to watch.
func (f *RingFlags) pinWatched() {
	f.pinSelector = ""
	f.pinNamespaces = slices.DeleteFunc(f.pinNamespaces, func(name string) bool {
		return name != pin.All && !slices.Contains(f.namespaces, name)
	})
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
