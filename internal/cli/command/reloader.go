package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/spillway-dev/spillway/internal/config/reloader"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

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
	// vain are flags that have no effect here, by name.
	vain map[string]*string
	// names are the annotations that flags rename, by their own names.
	names map[string]*string
}

// add adds the flags. Those of Reloader are for who brings its arguments along, and are in no list.
func (f *reloaderFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.on, ReloaderAnnotations, false, "roll workloads also by the annotations of Reloader, and restart Rollouts of Argo; its flags that rename annotations and leave objects out are accepted, too")
	flags.BoolVar(&f.cronJobs, ReloaderCronJobs, false, "start a run of CronJobs whose config changes, where annotations of Reloader on them ask for it; without it, their next run has the new config")
	flags.BoolVar(&f.metrics, ReloaderMetrics, false, "count and report rolls by annotations of Reloader by the names of its metrics and Events, too")
	of := pflag.NewFlagSet("reloader", pflag.ContinueOnError)
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
	f.vain = map[string]*string{}
	for _, flag := range vocabulary.ReloaderFlags() {
		if flag.Vain {
			f.vain[flag.Name] = of.String(flag.Name, "", "without effect")
			of.Lookup(flag.Name).NoOptDefVal = "true"
		}
	}
	f.names = map[string]*string{}
	for _, k := range vocabulary.ReloaderKeys() {
		if k.Flag != "" {
			f.names[k.Name] = of.String(k.Flag, k.Name, "the annotation that is read as "+k.Name)
		}
	}
	of.VisitAll(func(flag *pflag.Flag) {
		flag.Hidden = true
		flags.AddFlag(flag)
	})
}

// options are nil if no annotation of Reloader is read.
func (f *reloaderFlags) options(now time.Time) (*reloader.Options, error) {
	o := &reloader.Options{Names: map[string]string{}, AutoAll: f.all, IgnoredNamespaces: f.namespaces, Classes: f.classes, Since: now}
	for name, other := range f.names {
		if *other != name {
			o.Names[name] = *other
		}
	}
	if !f.on {
		return nil, f.unread(o)
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

// scope reads what leaves objects and namespaces out.
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
		if flag.Vain && *f.reloader.vain[flag.Name] != "" {
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

// runsCronJobs reports whether CronJobs are run for changes of their config.
func (f *reloaderFlags) runsCronJobs() bool {
	return f.cronJobs && !slices.Contains(f.workloads, "cronjobs")
}

// unread is an error if a flag of Reloader has no effect, because its annotations are not read.
func (f *reloaderFlags) unread(o *reloader.Options) error {
	var given []string
	for name, is := range map[string]bool{
		"auto-reload-all": o.AutoAll, "namespaces-to-ignore": len(f.namespaces) > 0, "resources-to-ignore": len(f.resources) > 0,
		"ignored-workload-types": len(f.workloads) > 0, "resource-label-selector": len(f.labels) > 0, "enable-csi-integration": f.classes,
		"namespace-selector": len(f.selector) > 0, vocabulary.ReloaderWebhook: f.webhook != "", ReloaderCronJobs: f.cronJobs, ReloaderMetrics: f.metrics, vocabulary.ReloaderRollouts: f.rollouts != "", "reload-on-create": f.onCreate != "false", "reload-on-delete": f.onDelete != "false",
	} {
		if is {
			given = append(given, name)
		}
	}
	for name, value := range f.vain {
		if *value != "" {
			given = append(given, name)
		}
	}
	for _, k := range vocabulary.ReloaderKeys() {
		if o.Names[k.Name] != "" {
			given = append(given, k.Flag)
		}
	}
	if len(given) == 0 {
		return nil
	}
	slices.Sort(given)
	return fmt.Errorf("--%s has no effect: annotations of Reloader are not read; add --%s", strings.Join(given, ", --"), ReloaderAnnotations)
}
