package vocabulary

import (
	"slices"
	"strings"
)

// LintIgnore lists the codes of findings of spillway lint that are intended:
// "SPW203, SPW101".
var LintIgnore = Key{Native: "spillway.dev/lint-ignore"}

// Place is where a key stands.
type Place string

// The places.
const (
	// Annotation: among the annotations of an object.
	Annotation Place = "annotation"
	// Label: among the labels.
	Label Place = "label"
	// Either: among either.
	Either Place = "annotation or label"
	// Template: among the annotations of a Pod template.
	Template Place = "annotation of a Pod template"
)

// Entry says of a key where it belongs, and who writes it.
type Entry struct {
	Key

	Place Place
	// Kinds are the kinds that it means something on; nil for any.
	Kinds []string
	// Values are the values that it may have; nil if it is not one of a few.
	Values []string
	// Written is true for what Spillway, wave, rollout-operator or KUDO write automatically.
	Written bool
	// Order is true for a request that a user makes once, by a command.
	Order bool
}

var (
	truth       = []string{"true", "false"}
	workloads   = []string{"Deployment", "StatefulSet", "DaemonSet"}
	jobs        = []string{"Job", "CronJob"}
	configs     = []string{"ConfigMap", "Secret"}
	zone        = []string{"StatefulSet"}
	webhooks    = []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}
	modules     = []string{"Module", "BootstrapModule"}
	assemblages = []string{"Assemblage", "ProxyAssemblage", "RemoteAssemblage"}
)

// Entries has every key, in the order of the rings.
func Entries() []Entry {
	return slices.Concat(configKeys(), zoneKeys(), scalingKeys(), planKeys(), fleetKeys(), otherKeys())
}

// HasNoEffect says of a name that means something on some kinds only that it is on another, and what to do.
func HasNoEffect(name, kind string, kinds []string) (said, instead string) {
	return name + " has no effect on a " + kind, "Move it to the " + strings.Join(kinds, " or ") + " that is meant, or remove it."
}

// PinsWithoutEffect is [HasNoEffect] of [PinConfig] on an object of a kind that can have no pins, empty if it
// does not ask for any.
func PinsWithoutEffect(kind string, annotations map[string]string) (said, instead string) {
	kinds := slices.Concat(workloads, jobs)
	if PinConfig.Get(annotations) != "true" || slices.Contains(kinds, kind) {
		return "", ""
	}
	return HasNoEffect(PinConfig.Native, kind, kinds)
}

func configKeys() []Entry {
	return []Entry{
		{Key: ConfigTracked, Place: Annotation, Kinds: workloads, Values: truth},
		{Key: ExtraConfigMaps, Place: Annotation, Kinds: workloads},
		{Key: ExtraSecrets, Place: Annotation, Kinds: workloads},
		{Key: IgnoredConfigMaps, Place: Annotation, Kinds: workloads},
		{Key: IgnoredSecrets, Place: Annotation, Kinds: workloads},
		{Key: ImagePullSecrets, Place: Annotation, Kinds: workloads, Values: truth},
		{Key: Paused, Place: Annotation, Kinds: slices.Concat(workloads, configs, []string{"Instance"}), Values: truth},
		{Key: PausedBy, Place: Annotation, Kinds: slices.Concat(workloads, configs), Written: true},
		{Key: CoalesceWindow, Place: Annotation, Kinds: workloads},
		{Key: CollectFor, Place: Annotation, Kinds: workloads},
		{Key: Priority, Place: Annotation, Kinds: workloads},
		{Key: PinConfig, Place: Annotation, Kinds: slices.Concat(workloads, jobs), Values: truth},
		{Key: Ignored, Place: Annotation, Kinds: configs, Values: truth},
		{Key: SharedWith, Place: Annotation, Kinds: append(slices.Clone(configs), "OperatorVersion")},
		{Key: StopOnFailure, Place: Annotation, Kinds: slices.Concat(workloads, configs), Values: truth},
		{Key: OnConfigFailure, Place: Annotation, Kinds: slices.Concat(workloads, configs), Values: []string{"Rollback", "Stop"}},
		{Key: StuckPods, Place: Annotation, Kinds: []string{"StatefulSet"}, Values: []string{"Replace", "Keep"}},
		{Key: StoppedBy, Place: Annotation, Kinds: configs},
		{Key: RetryConfig, Place: Annotation, Kinds: configs, Order: true},
		{Key: SchedulingDisabled, Place: Annotation, Kinds: workloads, Written: true},
		{Key: Suspended, Place: Annotation, Kinds: workloads, Written: true},
		{Key: ConfigChange, Place: Annotation, Kinds: workloads, Written: true},
		{Key: ConfigBaseline, Place: Annotation, Kinds: workloads, Written: true},
		{Key: ConfigSeen, Place: Annotation, Kinds: slices.Concat(workloads, jobs), Written: true},
		{Key: ConfigRun, Place: Label, Kinds: []string{"Job"}, Values: []string{"queued", "started"}, Written: true},
		{Key: ConfigStatus, Place: Annotation, Kinds: workloads, Written: true},
		{Key: ConfigFailed, Place: Annotation, Kinds: workloads, Written: true},
		{Key: ConfigAnswered, Place: Annotation, Kinds: workloads, Written: true},
		{Key: ConfigBudget, Place: Annotation, Kinds: []string{"Lease"}, Written: true},
		{Key: DefaultPolicy, Place: Annotation, Kinds: []string{"Lease"}, Written: true},
		{Key: ConfigHash, Place: Template, Kinds: workloads, Written: true},
		{Key: Pins, Place: Template, Kinds: append(slices.Clone(workloads), "Job"), Written: true},
		{Key: JobPins, Place: Annotation, Kinds: []string{"Job"}, Written: true},
		{Key: Snapshot, Place: Label, Kinds: configs, Values: truth, Written: true},
		{Key: SnapshotOf, Place: Annotation, Kinds: configs, Written: true},
	}
}

func zoneKeys() []Entry {
	return []Entry{
		{Key: RolloutGroup, Place: Either, Kinds: zone},
		{Key: RolloutMaxUnavailable, Place: Annotation, Kinds: zone},
		{Key: RolloutPaused, Place: Annotation, Kinds: zone, Values: truth},
		{Key: ZoneOrder, Place: Annotation, Kinds: zone},
		{Key: LentStrategy, Place: Annotation, Kinds: zone, Written: true},
		{Key: Withdrawn, Place: Annotation, Kinds: []string{"Pod", "StatefulSet", "ProxyAssemblage", "RemoteAssemblage"}, Written: true},
		{Key: Automatic, Place: Annotation, Kinds: []string{"RolloutGroup"}, Written: true},
	}
}

func scalingKeys() []Entry {
	scaled := []string{"StatefulSet", "Deployment", "ReplicaSet"}
	return []Entry{
		{Key: NoDownscale, Place: Label, Kinds: scaled, Values: truth},
		{Key: PrepareDownscale, Place: Label, Kinds: zone, Values: truth},
		{Key: Scaled, Place: Annotation, Kinds: zone, Written: true},
		{Key: PreparesScales, Place: Label, Kinds: []string{"Namespace"}, Values: truth, Written: true},
		{Key: GuardsEvictions, Place: Label, Kinds: []string{"Namespace"}, Values: truth, Written: true},
		{Key: PrepareDownscalePath, Place: Annotation, Kinds: zone},
		{Key: PrepareDownscalePort, Place: Annotation, Kinds: zone},
		{Key: PrepareDownscaleScheme, Place: Annotation, Kinds: zone, Values: []string{"http", "https"}},
		{Key: MinTimeBetweenZonesDownscale, Place: Either, Kinds: zone},
		{Key: LastDownscale, Place: Annotation, Kinds: zone, Written: true},
		{Key: DownscaleLeader, Place: Annotation, Kinds: zone},
		{Key: UpscaleOnlyWhenLeaderReady, Place: Annotation, Kinds: zone, Values: truth},
		{Key: ForceReplicas, Place: Annotation, Kinds: zone},
		{Key: MirrorName, Place: Annotation, Kinds: zone},
		{Key: MirrorKind, Place: Annotation, Kinds: zone},
		{Key: MirrorAPIVersion, Place: Annotation, Kinds: zone},
		{Key: MirrorWriteBack, Place: Annotation, Kinds: zone, Values: truth},
		{Key: DelayedDownscale, Place: Annotation, Kinds: zone},
		{Key: DelayedDownscaleURL, Place: Annotation, Kinds: zone},
	}
}

func planKeys() []Entry {
	instance := []string{"Instance"}
	return []Entry{
		{Key: AbandonPlan, Place: Annotation, Kinds: instance, Order: true},
		{Key: RetryPlan, Place: Annotation, Kinds: instance, Order: true},
		{Key: SupersedePlan, Place: Annotation, Kinds: instance, Order: true},
		{Key: PlanGates, Place: Annotation, Kinds: instance},
		{Key: LastAppliedInstanceState, Place: Annotation, Kinds: instance, Written: true},
		{Key: Instance, Place: Annotation, Written: true},
		{Key: Adopt, Place: Annotation, Values: truth},
		{Key: OnImmutable, Place: Annotation, Values: []string{"fail", "recreate"}},
		{Key: LoseDataOnRecreate, Place: Annotation, Values: truth},
		{Key: Prune, Place: Annotation, Values: truth},
		{Key: GenerateOnce, Place: Annotation, Kinds: []string{"Secret"}},
		{Key: SkipHashCalculation, Place: Annotation},
		{Key: Key{Native: PackagePermissions}, Place: Label, Kinds: []string{"ClusterRole"}, Values: truth},
	}
}

func fleetKeys() []Entry {
	return []Entry{
		{Key: Cluster, Place: Label, Kinds: []string{"Secret"}, Values: truth},
		{Key: AbandonCluster, Place: Annotation, Kinds: assemblages, Values: truth},
		{Key: AppliedHash, Place: Annotation, Written: true},
		{Key: ProxiedBy, Place: Annotation, Written: true},
		{Key: ProxiedFor, Place: Annotation, Written: true},
		{Key: SentSyncs, Place: Annotation, Written: true},
		{Key: GivenUp, Place: Annotation, Written: true},
		{Key: TakeOver, Place: Annotation, Kinds: []string{"ProxyAssemblage"}},
		{Key: Repointed, Place: Annotation, Kinds: []string{"Kustomization", "HelmRelease"}, Written: true},
		{Key: ReleaseDeletionPolicy, Place: Annotation, Kinds: []string{"HelmRelease"}, Written: true},
		{Key: AppliedAfter, Place: Annotation, Kinds: []string{"Kustomization", "HelmRelease"}, Written: true},
		{Key: SharedSource, Place: Label, Written: true},
		{Key: ApproveRemoval, Place: Annotation, Kinds: modules},
		{Key: RetryModule, Place: Annotation, Kinds: modules, Order: true},
		{Key: Steered, Place: Annotation, Kinds: modules, Written: true},
		{Key: WrittenBy, Place: Annotation, Kinds: []string{"ModuleRevision"}, Written: true},
	}
}

func otherKeys() []Entry {
	return []Entry{
		{Key: InjectCA, Place: Label, Kinds: webhooks, Values: truth},
		{Key: ServedFrom, Place: Label, Kinds: webhooks},
		{Key: Injected, Place: Annotation, Kinds: webhooks, Written: true},
		{Key: Key{Native: Ring}, Place: Label},
		{Key: Key{Native: Admitted}, Place: Annotation, Written: true},
		{Key: LintIgnore, Place: Annotation},
		{Key: GateHosts, Place: Annotation, Kinds: []string{"Secret"}},
		{Key: RunsForGates, Place: Annotation, Kinds: []string{"CronJob"}},
		{Key: GateJob, Place: Label, Written: true},
	}
}
