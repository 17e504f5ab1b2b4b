package vocabulary

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Former is a program whose work Spillway carries on, with each name by which its users tell it what to do.
type Former struct {
	// Name is that of spillway migrate --from.
	Name string
	// Of says which program and which version is meant.
	Of    string
	Keys  []FormerKey
	Flags []FormerFlag
}

// FormerKey is an annotation, a label or another name on objects.
type FormerKey struct {
	Name  string
	Place Place
	// Flag renames it, empty if none does.
	Flag string
	// Rolls is true of those that roll a workload.
	Rolls bool
	// Differs says what differs in Spillway, empty if it is the same.
	Differs string
	// Instead is the native spelling, or says what has the same effect.
	Instead string
}

// FormerFlag is a flag, or a variable of the environment, whose name is in capital letters.
type FormerFlag struct {
	// Name stands for all that begin so if it ends with an asterisk.
	Name string
	// Accepted is true if the manager has the flag, or one of that name.
	Accepted bool
	// Vain is true if it is accepted and has no effect, which is logged with Differs where it is one of Reloader.
	Vain bool
	// Sets is true of what spillway install sets itself, so that it is not carried over.
	Sets bool
	// As is the flag of the manager, or [WatchNamespaces] of spillway install, to which its value is carried over;
	// empty if that has the same name.
	As string
	// Differs says what differs, or what has the same effect; empty if it is the same.
	Differs string
}

// WatchNamespaces is the flag of spillway install that names the namespaces to watch.
const WatchNamespaces = "watch-namespaces"

// IsVariable reports whether it is a variable of the environment.
func (f *FormerFlag) IsVariable() bool { return strings.ToUpper(f.Name) == f.Name }

// Is reports whether a name is that of the flag.
func (f *FormerFlag) Is(name string) bool {
	lead, many := strings.CutSuffix(f.Name, "*")
	return name == f.Name || many && strings.HasPrefix(name, lead)
}

// FlagOf is the flag or the variable of a name, nil if the former program has none.
func (f *Former) FlagOf(name string) *FormerFlag {
	if i := slices.IndexFunc(f.Flags, func(flag FormerFlag) bool { return flag.Is(name) }); i >= 0 {
		return &f.Flags[i]
	}
	return nil
}

// Formers are all that can be changed over from.
func Formers() []Former {
	return []Former{
		{Name: "wave", Of: "wave 0.11", Keys: waveKeys(), Flags: waveFlags()},
		{Name: "reloader", Of: "Reloader 1.4.21", Keys: ReloaderKeys(), Flags: ReloaderFlags()},
		{Name: "rollout-operator", Of: "rollout-operator 0.38", Keys: rolloutOperatorKeys(), Flags: rolloutOperatorFlags()},
		{Name: "kudo", Of: "KUDO 0.19", Keys: kudoKeys(), Flags: kudoFlags()},
		{Name: "fleeet", Of: "fleeet, on the hub and on its clusters", Flags: slices.Concat(serving(), zapFlags())},
	}
}

// FormerOf is the former program of a name, nil if there is none.
func FormerOf(name string) *Former {
	all := Formers()
	if i := slices.IndexFunc(all, func(f Former) bool { return f.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// aliasesOf are the names of the keys that a former program has, with what differs of some.
func aliasesOf(entries []Entry, is func(name string) bool, differs map[string]string) (keys []FormerKey) {
	for _, e := range entries {
		for _, name := range e.Aliases {
			if is(name) {
				keys = append(keys, FormerKey{Name: name, Place: e.Place, Differs: differs[name], Instead: e.Native})
			}
		}
	}
	return keys
}

func waveKeys() []FormerKey {
	const shared = "an object of another namespace counts only if it is shared by spillway.dev/shared-with"
	keys := aliasesOf(configKeys(), func(name string) bool { return strings.HasPrefix(name, "wave.") }, map[string]string{
		ExtraConfigMaps.Aliases[0]: shared, ExtraSecrets.Aliases[0]: shared,
		SchedulingDisabled.Aliases[0]: "new workloads whose config is missing get a scheduling gate; what wave has suspended is released as soon as its config exists",
	})
	return append(keys,
		FormerKey{Name: SuspendedScheduler, Place: "schedulerName of a Pod template", Differs: "is replaced by the scheduler of before as soon as the config exists; new workloads get a scheduling gate", Instead: Suspended.Native},
		FormerKey{Name: ConfigFinalizer, Place: finalizer, Differs: "is removed, as wave does since 2024", Instead: "nothing is needed"},
	)
}

const finalizer Place = "finalizer"

// own is a flag that the manager has, and that spillway install sets.
func own(name, differs string) FormerFlag {
	return FormerFlag{Name: name, Accepted: true, Sets: true, Differs: differs}
}

// needless is what the manager does not have, and why.
func needless(name, why string) FormerFlag { return FormerFlag{Name: name, Differs: why} }

func waveFlags() []FormerFlag {
	return slices.Concat([]FormerFlag{
		own("leader-election", ""),
		own("leader-election-id", ""),
		own("leader-election-namespace", ""),
		{Name: "sync-period", Accepted: true},
		{Name: "update-rate", Accepted: true, Differs: "one rate for all kinds; 0 means no limit, as Inf does, and with wave 1 a second"},
		{Name: "update-burst", Accepted: true},
		own("enable-webhooks", "spillway install --webhooks, which is on by default"),
		{Name: "namespaces", Accepted: true, As: WatchNamespaces},
		own("version", "prints the version of Spillway"),
		own("kubeconfig", ""),
	}, zapFlags())
}

func zapFlags() []FormerFlag {
	return []FormerFlag{
		own("zap-devel", "the level debug"), own("zap-encoder", "console is the format text"), own("zap-log-level", "panic is the level error"),
		{Name: "zap-stacktrace-level", Accepted: true, Vain: true, Sets: true, Differs: "no stack traces are logged"},
		{Name: "zap-time-encoding", Accepted: true, Vain: true, Sets: true, Differs: "the format of times is fixed"},
	}
}

// serving are the flags of a manager that kubebuilder has made.
func serving() []FormerFlag {
	return []FormerFlag{own("metrics-bind-address", ""), own("health-probe-bind-address", ""), own("leader-elect", ""), own("kubeconfig", "")}
}

func rolloutOperatorKeys() []FormerKey {
	const gone = "is read, and no longer written: the RolloutGroup has it"
	keys := aliasesOf(slices.Concat(zoneKeys(), scalingKeys(), otherKeys()), func(string) bool { return true }, map[string]string{
		RolloutMaxUnavailable.Aliases[0]:        "an invalid value stalls the group, and does not count as 1",
		RolloutPaused.Aliases[0]:                "a paused zone that is not ready stops the others",
		PrepareDownscale.Aliases[0]:             "Pods that do not exist or do not run yet get no request; if their claims are bound, the downscale is refused",
		MinTimeBetweenZonesDownscale.Aliases[0]: "may also be an annotation, which counts more than the label",
		LastDownscale.Aliases[0]:                gone,
		DownscaleLeader.Aliases[0]:              "a downscale also waits while a Pod of another zone is unavailable",
		InjectCA.Aliases[0]:                     "the path of each webhook gets a key as well",
	})
	keys = append(keys,
		FormerKey{Name: "name", Place: "label of a Pod template", Differs: "is not needed: Pods are found by their owner", Instead: "nothing is needed"},
		FormerKey{Name: "grafana.com/ready-time", Place: "annotation of a Pod", Differs: "is not read and not written: a delay counts from the Ready condition of the Pod", Instead: "nothing is needed"},
	)
	for _, name := range slices.Sorted(maps.Keys(unsupported)) {
		keys = append(keys, FormerKey{Name: proposedIn + name, Place: Either, Differs: "is only proposed for rollout-operator, and has no effect", Instead: unsupported[name].zone})
	}
	return keys
}

func rolloutOperatorFlags() []FormerFlag {
	const (
		found       = "the API server of the cluster is used; outside of one, --kubeconfig"
		fair        = "the API server limits requests by its flow control"
		certificate = "the certificate is generated and renewed; --webhook-cert-source names another"
		remembers   = "the RolloutGroup has the time of the last downscale"
	)
	served := func(name, differs string) FormerFlag { return FormerFlag{Name: name, Sets: true, Differs: differs} }
	return []FormerFlag{
		{Name: "kubernetes.namespace", As: WatchNamespaces},
		{Name: "kubernetes.cluster-domain", As: "cluster-domain"},
		needless("kubernetes.api-url", found), needless("kubernetes.config-file", found),
		needless("kubernetes.client-timeout", fair), needless("kubernetes.client-qps", fair), needless("kubernetes.client-burst", fair),
		{Name: "pods.client-timeout", As: "pod-timeout", Differs: "0, which is no limit there, is refused"},
		needless("reconcile.interval", "the next zone starts as soon as the one before is complete"),
		served("log.format", "--log-format, text or json"), served("log.level", "--log-level, with the same levels"),
		served("server.port", "--metrics-bind-address and --health-probe-bind-address"),
		served("server-tls.enabled", "spillway install --webhooks, which is on by default"),
		served("server-tls.port", "--webhook-bind-address"),
		served("server-tls.cert-file", "--webhook-cert-dir, with --webhook-cert-source=files"),
		served("server-tls.key-file", "--webhook-cert-dir, with --webhook-cert-source=files"),
		needless("server-tls.request-timeout", "the webhook configuration says how long the API server waits"),
		served("server-tls.self-signed-cert.enabled", certificate),
		served("server-tls.self-signed-cert.secret-name", certificate),
		served("server-tls.self-signed-cert.dns-name", "--webhook-host, for a name that is not that of the Service"),
		served("server-tls.self-signed-cert.org", certificate),
		served("server-tls.self-signed-cert.expiration", certificate),
		needless("webhooks.update-ca-bundle", "the CA is always injected; --webhook-configurations names those that get it"),
		needless("use-zone-tracker", remembers), needless("zone-tracker.config-map-name", remembers),
		needless("zpdb.pod-ready-annotation-patch-timeout", "no Pod is annotated"),
		needless("server.cluster-validation.http.*", "a key in the path of a webhook says who calls"),
		{Name: "OTEL_*", Accepted: true, Differs: "traces are sent by OTLP over HTTP alone"},
		needless("JAEGER_*", "OTEL_EXPORTER_OTLP_ENDPOINT; Jaeger accepts OTLP"),
		needless("HTTP_PROXY", "Pods are called without a proxy"),
	}
}

func kudoKeys() []FormerKey {
	const nothing = "nothing is needed"
	mark := func(name string, place Place) FormerKey { return FormerKey{Name: name, Place: place, Instead: nothing} }
	return []FormerKey{
		mark(Heritage, Label), mark(OperatorLabel, Label), mark(InstanceLabel, Label),
		mark(OperatorVersionAnnotation, Template),
		mark(PlanAnnotation, Annotation), mark(PhaseAnnotation, Annotation), mark(StepAnnotation, Annotation), mark(ExecutionAnnotation, Annotation),
		{Name: DependenciesHash, Place: Template, Differs: "stays until an upgrade replaces the Pods; then the config ring rolls the workload, for all config that it uses", Instead: ConfigTracked.Native},
		{Name: SkipHashCalculation.Native, Place: Annotation, Differs: "on a workload of a package as well: its config does not roll it", Instead: Ignored.Native},
		{Name: LastAppliedConfiguration, Place: Annotation, Differs: "is read once, and removed: the API server knows which fields are those of the Instance", Instead: nothing},
		{Name: LastAppliedInstanceState.Native, Place: Annotation, Differs: "of KUDO before 0.15 is read once: what has changed since runs its plan", Instead: nothing},
		{Name: CleanupFinalizer, Place: finalizer, Instead: nothing},
	}
}

func kudoFlags() []FormerFlag {
	return []FormerFlag{
		{Name: "KUDO_SYNCPERIOD", As: "sync-period"},
		{Name: "KUDO_CERT_DIR", Sets: true, Differs: "--webhook-cert-dir, with --webhook-cert-source=files"},
		{Name: "ENABLE_WEBHOOKS", Sets: true, Differs: "spillway install --webhooks, which is on by default"},
		{Name: "POD_NAMESPACE", Sets: true}, {Name: "SECRET_NAME", Sets: true},
	}
}

// Target is the flag of the manager to which the value of a flag is carried over, empty if it is not.
func (f *FormerFlag) Target() string {
	if f.Sets || f.As == WatchNamespaces || !f.Accepted && f.As == "" || f.IsVariable() && f.As == "" {
		return ""
	}
	return cmp.Or(f.As, f.Name)
}
