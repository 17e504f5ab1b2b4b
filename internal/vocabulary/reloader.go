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
