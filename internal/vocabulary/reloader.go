package vocabulary

import "strings"

// Annotations of Reloader (github.com/stakater/Reloader), by the names that they have unless a flag renames
// them. They are no aliases of keys of Spillway: what they mean differs in part, and Spillway reads them only
// with --reloader-annotations, because Reloader may still run and read them.
const (
	ReloaderAuto             = "reloader.stakater.com/auto"
	ReloaderAutoConfigMaps   = "configmap.reloader.stakater.com/auto"
	ReloaderAutoSecrets      = "secret.reloader.stakater.com/auto"
	ReloaderAutoClasses      = "secretproviderclass.reloader.stakater.com/auto"
	ReloaderListConfigMaps   = "configmap.reloader.stakater.com/reload"
	ReloaderListSecrets      = "secret.reloader.stakater.com/reload"
	ReloaderListClasses      = "secretproviderclass.reloader.stakater.com/reload"
	ReloaderSearch           = "reloader.stakater.com/search"
	ReloaderMatch            = "reloader.stakater.com/match"
	ReloaderIgnore           = "reloader.stakater.com/ignore"
	ReloaderExcludeConfigMap = "configmaps.exclude.reloader.stakater.com/reload"
	ReloaderExcludeSecrets   = "secrets.exclude.reloader.stakater.com/reload"
	ReloaderExcludeClasses   = "secretproviderclasses.exclude.reloader.stakater.com/reload"
	ReloaderPausePeriod      = "deployment.reloader.stakater.com/pause-period"
	ReloaderPausedAt         = "deployment.reloader.stakater.com/paused-at"
	ReloaderRolloutStrategy  = "reloader.stakater.com/rollout-strategy"
	ReloaderLastReloadedFrom = "reloader.stakater.com/last-reloaded-from"
)

// reloaderDomain ends the domains of its annotations.
const reloaderDomain = "reloader.stakater.com"

// IsOfReloader reports whether an annotation has a name of Reloader's, known or not.
func IsOfReloader(name string) bool {
	domain, _, _ := strings.Cut(name, "/")
	return domain == reloaderDomain || strings.HasSuffix(domain, "."+reloaderDomain)
}

// ReloaderKeys has every annotation of Reloader 1.4.21.
func ReloaderKeys() []FormerKey {
	follow := ConfigTracked.Native + `: "true" follows all config that its Pods use`
	listed := follow + "; what its program reads through the API is named by "
	classes := follow + ", also what the Secrets Store CSI Driver mounts"
	mounted := "counts the SecretProviderClasses that the Pod template mounts, and not the annotations of a SecretProviderClass"
	return []FormerKey{
		{Name: ReloaderAuto, Flag: "auto-annotation", Rolls: true, Instead: follow},
		{Name: ReloaderAutoConfigMaps, Flag: "configmap-auto-annotation", Rolls: true, Instead: follow + ", Secrets as well"},
		{Name: ReloaderAutoSecrets, Flag: "secret-auto-annotation", Rolls: true, Instead: follow + ", ConfigMaps as well"},
		{Name: ReloaderAutoClasses, Flag: "secretproviderclass-auto-annotation", Rolls: true, Differs: mounted, Instead: classes},
		{Name: ReloaderListConfigMaps, Flag: "configmap-annotation", Rolls: true, Differs: reloaderLimits, Instead: listed + ExtraConfigMaps.Native},
		{Name: ReloaderListSecrets, Flag: "secret-annotation", Rolls: true, Differs: reloaderLimits, Instead: listed + ExtraSecrets.Native},
		{Name: ReloaderListClasses, Flag: "secretproviderclass-annotation", Rolls: true, Differs: mounted + "; " + reloaderLimits, Instead: classes},
		{Name: ReloaderSearch, Flag: "auto-search-annotation", Rolls: true, Instead: follow + ", whether that is marked or not; " + Ignored.Native + ` on config leaves it out`},
		{Name: ReloaderMatch, Flag: "search-match-annotation", Instead: "what a workload that is followed uses needs no mark; " + Ignored.Native + " leaves it out"},
		{Name: ReloaderIgnore, Flag: "ignore-annotation", Instead: Ignored.Native + `: "true" keeps its changes from rolling anything`},
		{Name: ReloaderExcludeConfigMap, Flag: "configmap-exclude-annotation", Instead: IgnoredConfigMaps.Native + " leaves ConfigMaps out"},
		{Name: ReloaderExcludeSecrets, Flag: "secret-exclude-annotation", Instead: IgnoredSecrets.Native + " leaves Secrets out"},
		{Name: ReloaderExcludeClasses, Flag: "secretproviderclass-exclude-annotation", Instead: "nothing has the same effect: what the driver mounts counts"},
		{
			Name: ReloaderPausePeriod, Flag: "pause-deployment-annotation", Instead: CollectFor.Native + " makes one roll of the changes within that time from the first one on",
			Differs: "does not pause the Deployment: the hash is written at the end of the period, so that a user's own rollouts go on meanwhile. An invalid value delays nothing; with Reloader it rolls nothing",
		},
		{
			Name: ReloaderPausedAt, Flag: "pause-deployment-time-annotation", Instead: "nothing is needed: no Deployment is paused",
			Differs: "is not written, because no Deployment is paused. One that Reloader has paused stays so: resume it",
		},
		{
			Name: ReloaderRolloutStrategy, Flag: "rollout-strategy-annotation", Instead: "nothing is needed: the workload rolls as its own strategy says",
			Differs: "each Rollout restarts as with `restart`: its Pods are replaced, and no steps run; on other kinds Reloader does not read it either",
		},
		{
			Name: ReloaderLastReloadedFrom, Flag: "last-reloaded-from-annotation", Instead: "nothing is needed: " + ConfigChange.Native + " says what a workload was rolled for",
			Differs: "is read once, and not written: a workload whose config was edited while neither ran is rolled. " + ConfigChange.Native + " on the workload says when and why it was rolled. What Reloader has written stays until the Pod template is replaced",
		},
	}
}

// ReloaderRolling are the names of those of an object's annotations by which Reloader rolls it.
func ReloaderRolling(annotations map[string]string) []string {
	var names []string
	for _, k := range ReloaderKeys() {
		if value := annotations[k.Name]; k.Rolls && value != "" && value != "false" {
			names = append(names, k.Name)
		}
	}
	return names
}

const reloaderLimits = "has at most 200 entries, with 1024 bytes of regular expressions. An invalid entry is reported, and the others count"

// ReloaderWebhook is a flag of Reloader that is refused, ReloaderRollouts the one for Rollouts of Argo, and
// ReloaderNamespace is what it reads of its environment.
const (
	ReloaderWebhook   = "webhook-url"
	ReloaderRollouts  = "is-Argo-Rollouts"
	ReloaderNamespace = "KUBERNETES_NAMESPACE"
)

// ReloaderFlags has every flag of Reloader 1.4.21 that renames no annotation, and what it reads of its environment.
func ReloaderFlags() []FormerFlag {
	accepted := func(name, differs string) FormerFlag {
		return FormerFlag{Name: name, Accepted: true, Differs: differs}
	}
	vain := func(name, differs string) FormerFlag {
		return FormerFlag{Name: name, Accepted: true, Vain: true, Differs: differs}
	}
	durations := "the durations are fixed"
	profiles := "the manager serves no profiles"
	alert := "a [Notifier](from-reloader.md#alerts)"
	return []FormerFlag{
		accepted("auto-reload-all", "a workload whose containers read nothing is not written"),
		{Name: "namespaces", Accepted: true, As: WatchNamespaces},
		{Name: ReloaderNamespace, Accepted: true, As: WatchNamespaces, Differs: "counts with `--reloader-annotations`, unless `--namespaces` is given; `watchNamespaces` of the chart grants what is needed there alone"},
		accepted("namespaces-to-ignore", "for annotations of Reloader alone: those of Spillway count in all namespaces that it watches"),
		accepted("namespace-selector", "for annotations of Reloader alone, and not with `--namespaces`. Also the labels of a namespace that change count, and a namespace that is selected rolls nothing"),
		accepted("resource-label-selector", ""),
		accepted("resources-to-ignore", ""),
		accepted("ignored-workload-types", "`cronjobs` counts with `--reloader-cronjobs`, without which no CronJob is run; `jobs` has no effect, because no Job is started again"),
		accepted("reload-on-create", "an object that is deleted and created with another content within the coalesce window is a change of it in any case, and so is one without which no Pod can start"),
		accepted("reload-on-delete", "not for an object that only a regular expression names"),
		vain("sync-after-restart", "what has changed while the manager was down is rolled when it runs again, and nothing else"),
		accepted("enable-csi-integration", "the versions count that the newest Pod has mounted"),
		vain("reload-strategy", "the hash is an annotation of the Pod template, as with `annotations`; no environment variable is written"),
		{Name: ReloaderWebhook, Differs: "refused: no URL is called in place of a roll. A [Notifier](notify.md) sends a message about each"},
		accepted(ReloaderRollouts, "Rollouts of Argo are restarted where the kind is installed, also without the flag; `false` leaves them alone"),
		vain("enable-ha", "`spillway install` runs two replicas, which elect a leader; `--leader-elect=false` turns that off"),
		vain("leader-election-lease-duration", durations),
		vain("leader-election-renew-deadline", durations),
		vain("leader-election-retry-period", durations),
		accepted("log-format", "`text` or `json`"),
		accepted("log-level", "`debug`, `info`, `warn` or `error`"),
		vain("enable-pprof", profiles),
		vain("pprof-addr", profiles),
		{Name: "ALERT_ON_RELOAD", Differs: alert},
		{Name: "ALERT_SINK", Differs: alert},
		{Name: "ALERT_WEBHOOK_URL", Differs: alert},
		{Name: "ALERT_ADDITIONAL_INFO", Differs: "no text is added: a message names its object, and each cluster has an address of its own"},
		{Name: "ALERT_WEBHOOK_PROXY", Differs: "a Notifier connects without a proxy"},
	}
}

// ReloaderKind is a kind of workload that Reloader rolls.
type ReloaderKind struct {
	Group, Kind string
	// Next says what becomes of one that is not rolled, as a clause; empty if the kind is rolled.
	Next string
	// Because says why it is not rolled as Reloader does it.
	Because string
}

// ReloaderKinds has every kind of workload that Reloader 1.4.21 rolls.
func ReloaderKinds() []ReloaderKind {
	var kinds []ReloaderKind
	for _, kind := range workloads {
		kinds = append(kinds, ReloaderKind{Group: "apps", Kind: kind})
	}
	return append(kinds,
		ReloaderKind{
			Group: "batch", Kind: "CronJob", Next: "its next run has the new config; with --reloader-cronjobs a change starts a run",
			Because: "a run at another time than the schedule is asked for by a flag; one that is suspended is not run, and `concurrencyPolicy` counts. Reloader starts a Job for each change, whatever the CronJob says",
		},
		ReloaderKind{
			Group: "batch", Kind: "Job", Next: "it runs once",
			Because: "its Pod template cannot change: to run again, the Job would be deleted and created, which are two requests. Between them a manager that begins cannot tell whether it or a user has deleted the Job: it would lose it, or run what a user has withdrawn. " +
				"The second request may be refused, by a quota or an admission policy. What waits for the Job, such as a hook of Helm, sees it deleted, and a Job that is complete in part does that part a second time. A Job that fails for its config is created again by the user",
		},
		ReloaderKind{
			Group: "argoproj.io", Kind: "Rollout", Next: "with --reloader-annotations a change restarts its Pods, without stages, stop and return",
			Because: "`spec.restartAt` is set, as Reloader does with `rollout-strategy: restart`, once for a change: Argo replaces the Pods within `maxUnavailable` of the Rollout. " +
				"That runs no steps and no analysis, and leaves no trace in the Pod template, so that nothing says with which config a Pod runs. So there are no budgets, no stages, no stop of a change that fails and no way back. " +
				"Reloader's other strategy writes the Pod template, which starts the steps",
		},
	)
}
