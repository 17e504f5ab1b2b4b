// Package vocabulary lists every annotation, label and finalizer that Spillway reads or writes.
// A [Key] has a native name (spillway.dev/NAME) and aliases: the names that wave,
// rollout-operator or KUDO have for the same.
//
// No other package chooses between them. A ring reads, for example, [ConfigTracked] with
// [Key.Get], which prefers the native name to an alias. It writes with [Key.In], so that an
// object with the annotations of an earlier project gets its names.
package vocabulary

import "strings"

// Key is an annotation or label with a native name and the names of
// earlier projects that mean the same.
type Key struct {
	// Native is the name below spillway.dev.
	Native string
	// Aliases are the names of earlier projects, in order of precedence.
	Aliases []string
}

// Annotations on workloads (Deployments, StatefulSets, DaemonSets).
var (
	// ConfigTracked set to "true" makes Spillway roll the workload when the
	// config that it uses changes.
	ConfigTracked = Key{"spillway.dev/update-on-config-change", []string{"wave.pusher.com/update-on-config-change"}}
	// ExtraConfigMaps names ConfigMaps that count as used though the Pod
	// template does not mention them: "name, namespace/name".
	ExtraConfigMaps = Key{"spillway.dev/extra-configmaps", []string{"wave.pusher.com/extra-configmaps"}}
	// ExtraSecrets names Secrets that count as used though the Pod template does not mention
	// them: "name, namespace/name".
	ExtraSecrets = Key{"spillway.dev/extra-secrets", []string{"wave.pusher.com/extra-secrets"}}
	// SchedulingDisabled holds the scheduler that a suspended workload had.
	SchedulingDisabled = Key{"spillway.dev/scheduling-disabled", []string{"wave.pusher.com/scheduling-disabled"}}
	// IgnoredConfigMaps names ConfigMaps, or keys of them, whose changes roll
	// nothing: "name, name:key".
	IgnoredConfigMaps = Key{Native: "spillway.dev/ignore-configmaps"}
	// IgnoredSecrets names Secrets, or keys of them, whose changes roll nothing:
	// "name, name:key".
	IgnoredSecrets = Key{Native: "spillway.dev/ignore-secrets"}
	// ImagePullSecrets set to "true" counts the template's image pull Secrets too.
	ImagePullSecrets = Key{Native: "spillway.dev/track-image-pull-secrets"}
	// Paused set to "true" pauses the workload, the plans of the Instance, or all workloads
	// that would be rolled for a change of the ConfigMap or Secret, until it is removed.
	Paused = Key{Native: "spillway.dev/pause"}
	// PausedBy records, as JSON, who paused an object by a command, when and why. It counts
	// beside [Paused] alone.
	PausedBy = Key{Native: "spillway.dev/paused-by"}
	// CoalesceWindow is a Go duration: changes that follow one another within it
	// are one roll.
	CoalesceWindow = Key{Native: "spillway.dev/coalesce-window"}
	// CollectFor is a Go duration: changes within it from the first one on are one roll, which is not delayed
	// further. It counts in place of [CoalesceWindow].
	CollectFor = Key{Native: "spillway.dev/collect-for"}
	// PinConfig set to "true" makes each revision of the workload keep the config that it
	// was rolled with. A Job keeps the config that it started with; a CronJob hands the
	// annotation to its Jobs.
	PinConfig = Key{Native: "spillway.dev/pin-config"}
	// Priority is an integer: workloads of a namespace with a higher one roll first.
	Priority = Key{Native: "spillway.dev/priority"}
)

// Annotations that Spillway writes on workloads.
var (
	// Suspended says that the workload's Pods are kept from being scheduled until
	// their config exists: "scheduling-gate". It is "waiting-pods" while Pods that were
	// created before the release may still be waiting.
	Suspended = Key{Native: "spillway.dev/suspended"}
	// ConfigChange records the last roll: when, and which keys had changed.
	ConfigChange = Key{Native: "spillway.dev/config-change"}
	// ConfigBaseline records the hash of the config with which a workload ran when it was opted in or taken over from
	// wave, where no ConfigRollout can record it. Earlier managers wrote it; what it says is moved.
	ConfigBaseline = Key{Native: "spillway.dev/config-baseline"}
	// ConfigSeen records, of a workload that is tracked by annotations of Reloader, which objects counted for its
	// hash, and digests of their contents: an object that counts only now rolls nothing. On a CronJob it records what
	// it was run with, and on a Job of it what it runs with.
	ConfigSeen = Key{Native: "spillway.dev/config-seen"}
	// ConfigStatus is a condition, as JSON: what a user must fix before config changes roll
	// the workload, and since when. Absent if there is nothing to fix.
	ConfigStatus = Key{Native: "spillway.dev/config-status"}
	// ConfigFailed records, as JSON, with which config the workload has failed. Earlier managers wrote
	// it; what it says is moved to ConfigRollouts.
	ConfigFailed = Key{Native: "spillway.dev/config-failed"}
	// ConfigAnswered records, as JSON, for which config a workload with pins was rolled last,
	// so that an undo of that roll is not rolled forward again.
	ConfigAnswered = Key{Native: "spillway.dev/config-answered"}
	// ConfigBudget records, on a Lease of the manager, which workloads were rolled, where
	// workloads of several namespaces wait for one another.
	ConfigBudget = Key{Native: "spillway.dev/config-budget"}
	// DefaultPolicy records, on the same Lease, that the manager has created the default
	// ClusterConfigPolicy, so that one that a user deletes stays deleted.
	DefaultPolicy = Key{Native: "spillway.dev/default-policy"}
)

// RolloutGroup is the label or annotation of a StatefulSet that names its group.
// The annotation wins over the label.
var RolloutGroup = Key{"spillway.dev/rollout-group", []string{"rollout-group"}}

// Annotations on StatefulSets of a group.
var (
	// RolloutMaxUnavailable is how many Pods of the StatefulSet may be unavailable
	// at a time: "2" or "25%".
	RolloutMaxUnavailable = Key{"spillway.dev/rollout-max-unavailable", []string{"rollout-max-unavailable"}}
	// RolloutPaused set to "true" keeps the Pods of the StatefulSet as they are.
	RolloutPaused = Key{"spillway.dev/rollout-paused", []string{"grafana.com/rollout-paused"}}
	// ZoneOrder is an integer: zones with a lower one go first, those without one last.
	ZoneOrder = Key{Native: "spillway.dev/zone-order"}
	// LentStrategy is written while a StatefulSet that is held by its partition
	// has the update strategy OnDelete for its turn; the value is the strategy before.
	LentStrategy = Key{Native: "spillway.dev/lent-update-strategy"}
)

// Withdrawn is written on the object of a write that was permitted, and is not to be made
// any more; the value is the resourceVersion that the write names, and that the object no
// longer has.
var Withdrawn = Key{Native: "spillway.dev/withdrawn"}

// Automatic is written on objects that Spillway creates automatically, and deletes
// automatically as long as no other client has changed them.
var Automatic = Key{Native: "spillway.dev/automatic"}

// GroupOf is the group of an object with such labels and annotations, empty if
// it has none.
func GroupOf(labels, annotations map[string]string) string {
	if group, _, ok := RolloutGroup.Lookup(annotations); ok {
		return group
	}
	return RolloutGroup.Get(labels)
}

// ConfigHash is the annotation of the Pod template that holds the hash.
var ConfigHash = Key{"spillway.dev/config-hash", []string{"wave.pusher.com/config-hash"}}

// Pins is the annotation of the Pod template, and of its Pods, that says with which content
// of its config they run: "cm/NAME=DIGEST,secret/NAME=DIGEST".
var Pins = Key{Native: "spillway.dev/pins"}

// JobPins is the annotation of a Job that keeps its config: "wanted" while it is suspended until
// it has pins, "waiting: CAUSE", and "set" once it has them, or "set without pins: CAUSE".
var JobPins = Key{Native: "spillway.dev/job-pins"}

// ConfigRun is the label of a Job of a CronJob whose config has changed: "queued" while it is suspended until no other
// Job of it is active, and "started".
var ConfigRun = Key{Native: "spillway.dev/config-run"}

// Snapshots of ConfigMaps and Secrets, which pins refer to.
var (
	// Snapshot set to "true", as a label, marks a snapshot.
	Snapshot = Key{Native: "spillway.dev/snapshot"}
	// SnapshotOf is UID/NAME of the object that a snapshot was taken of.
	SnapshotOf = Key{Native: "spillway.dev/snapshot-of"}
)

// Annotations on ConfigMaps and Secrets; SharedWith also on OperatorVersions.
var (
	// Ignored set to "true" on a ConfigMap or Secret keeps its changes from
	// rolling anything.
	Ignored = Key{Native: "spillway.dev/ignore"}
	// SharedWith lists the namespaces whose workloads may name the object as an
	// extra one, or whose Instances may use the OperatorVersion: "payments, shop", or
	// "*" for all.
	SharedWith = Key{Native: "spillway.dev/shared-with"}
	// StopOnFailure set to "false" on a ConfigMap or Secret lets a change of it go on
	// although a workload has failed with it; on a workload, it is neither stopped nor
	// does it stop others.
	StopOnFailure = Key{Native: "spillway.dev/stop-on-failure"}
	// OnConfigFailure set to "Rollback" on a workload with pins, or on a ConfigMap or Secret,
	// gives a workload that fails with a change its previous config back; "Stop" does not, and
	// on a workload counts more than on what it uses.
	OnConfigFailure = Key{Native: "spillway.dev/on-config-failure"}
	// StuckPods set to "Replace" on a StatefulSet lets a Pod be deleted that was never ready at
	// an earlier revision, and for which the StatefulSet waits before it updates; "Keep" does
	// not. Without it, that is so where the ring itself rolled the earlier revision.
	StuckPods = Key{Native: "spillway.dev/stuck-pods"}
	// StoppedBy lists the namespaces whose workloads may stop a change of the ConfigMap or
	// Secret everywhere: "canary", or "*" for all.
	StoppedBy = Key{Native: "spillway.dev/stopped-by"}
	// RetryConfig is the time, as in RFC 3339, up to which failures with the ConfigMap or
	// Secret do not count.
	RetryConfig = Key{Native: "spillway.dev/retry-config"}
)

// IsSharedWith is true if a value of [SharedWith] names a namespace.
func IsSharedWith(value, namespace string) bool {
	for entry := range strings.SplitSeq(value, ",") {
		if entry = strings.TrimSpace(entry); entry == "*" || entry == namespace {
			return true
		}
	}
	return false
}

// Labels of webhook configurations.
var (
	// InjectCA set to "true" has the CA bundle of the admission server injected.
	InjectCA = Key{"spillway.dev/inject-ca", []string{"grafana.com/inject-rollout-operator-ca"}}
	// ServedFrom is the namespace of the manager whose CA bundle is injected.
	ServedFrom = Key{"spillway.dev/manager-namespace", []string{"grafana.com/namespace"}}
)

// Injected is written on webhook configurations, a moment after the CA or the paths of their webhooks have changed. The
// value is the UID and the generation. An API server that has missed that change sees this one.
var Injected = Key{Native: "spillway.dev/injected"}

// Labels and annotations of the fleet.
var (
	// Cluster set to "true" on a Secret with a kubeconfig makes it a cluster of the
	// fleet, with the labels of the Secret, where there is no Cluster API.
	Cluster = Key{Native: "spillway.dev/cluster"}
	// AbandonCluster set to "true" on an assemblage of the hub has it deleted without a removal
	// on the cluster.
	AbandonCluster = Key{Native: "spillway.dev/abandon-cluster"}
	// AppliedHash is the hash of what was applied to an object, so that fields that are no
	// longer wanted are noticed as well.
	AppliedHash = Key{Native: "spillway.dev/applied-hash"}
	// ProxiedBy names, on an Assemblage of a workload cluster, the ProxyAssemblage
	// by its UID that writes it.
	ProxiedBy = Key{Native: "spillway.dev/proxied-by"}
	// ProxiedFor names the same ProxyAssemblage by hub, namespace, name and cluster, which stay
	// when the hub is rebuilt.
	ProxiedFor = Key{Native: "spillway.dev/proxied-for"}
	// SentSyncs are the names of the syncs that the ProxyAssemblage has sent.
	SentSyncs = Key{Native: "spillway.dev/sent-syncs"}
	// GivenUp has, as JSON, what each module gave up last: the copy that lies with the cluster.
	GivenUp = Key{Native: "spillway.dev/given-up"}
	// TakeOver lets a ProxyAssemblage replace an Assemblage that another ProxyAssemblage wrote,
	// whose UID it names.
	TakeOver = Key{Native: "spillway.dev/take-over"}
	// Repointed is the generation of a Kustomization or HelmRelease that differs from the one before, which had
	// succeeded, only in where the same content is fetched from.
	Repointed = Key{Native: "spillway.dev/repointed"}
	// ReleaseDeletionPolicy says what becomes of what a HelmRelease has installed when it is
	// deleted: Delete or Orphan, and Leaving while it is suspended for that.
	ReleaseDeletionPolicy = Key{Native: "spillway.dev/release-deletion-policy"}
	// AppliedAfter are the Kustomizations and HelmReleases, as KIND/NAME, that it depends on and
	// Flux does not know of, because they are of the other kind.
	AppliedAfter = Key{Native: "spillway.dev/applied-after"}
	// SharedSource is the label of Flux sources that are deleted once nothing uses them.
	SharedSource = Key{Native: "spillway.dev/shared-source"}
	// GateHosts are the hosts that the gates of a namespace may send a Secret to:
	// "prometheus.monitoring.svc".
	GateHosts = Key{Native: "spillway.dev/gate-hosts"}
	// RunsForGates are the gates that a CronJob may be run for: "smoke-test".
	RunsForGates = Key{Native: "spillway.dev/runs-for-gates"}
	// GateJob is the label of the Jobs that run for gates.
	GateJob = Key{Native: "spillway.dev/gate-job"}
	// ApproveRemoval is the removal of clusters from a module that a user has approved: the
	// value of its status.removal.approval. "spillway fleet approve --remove" sets it.
	ApproveRemoval = Key{Native: "spillway.dev/approve-removal"}
	// Steered is the last command that a user gave for a module, as JSON: what, who, why and
	// when.
	Steered = Key{Native: "spillway.dev/steered"}
	// RetryModule names, as JSON, the revision of a module that is rolled out once more, and when it
	// was given up. "spillway retry" sets it.
	RetryModule = Key{Native: "spillway.dev/retry-module"}
	// WrittenBy is the field manager that wrote the revision of the module.
	WrittenBy = Key{Native: "spillway.dev/written-by"}
)

// AssemblageFinalizer keeps an assemblage until what it has brought about is gone.
const AssemblageFinalizer = "spillway.dev/assemblage"

// ModuleFinalizer keeps a module until it was taken away from all clusters.
const ModuleFinalizer = "spillway.dev/module"

// Ring is the label of installed objects that belong to one ring, by its name.
const Ring = "spillway.dev/ring"

const (
	// Admitted is the annotation on what a webhook has allowed, where a policy asks
	// for the answer: on Evictions, which are not stored.
	Admitted = "spillway.dev/admitted"
	// AdmittedYes is its value.
	AdmittedYes = "true"
	// SchedulingGate is the gate on the Pods of a suspended workload.
	SchedulingGate = "spillway.dev/config-missing"
	// SuspendedByGate as the value of [Suspended]: the template has the gate.
	SuspendedByGate = "scheduling-gate"
	// SuspendedPods as the value of [Suspended]: only Pods made before may have it.
	SuspendedPods = "waiting-pods"
	// SuspendedScheduler is the scheduler that does not exist, by which wave
	// prevents Pods from starting before their config exists.
	SuspendedScheduler = "wave.pusher.com/invalid"
	// DefaultScheduler is what an empty schedulerName means.
	DefaultScheduler = "default-scheduler"
	// ConfigFinalizer was put on workloads by versions of wave that
	// also made them owners of the config they used.
	ConfigFinalizer = "wave.pusher.com/finalizer"
)

// Lookup returns the value of the key in m, and the name under which it stands
// there. The native name wins over aliases.
func (k Key) Lookup(m map[string]string) (value, name string, ok bool) {
	for _, name := range k.Names() {
		if value, ok := m[name]; ok {
			return value, name, true
		}
	}
	return "", "", false
}

// Get returns the value of the key in m, empty if there is none.
func (k Key) Get(m map[string]string) string {
	value, _, _ := k.Lookup(m)
	return value
}

// Names are all names of the key, the native one first.
func (k Key) Names() []string {
	return append([]string{k.Native}, k.Aliases...)
}

// In returns the name of the key in the dialect of another key's name, so that
// a workload with annotations of an earlier project gets its names.
func (k Key) In(other string) string {
	domain, _, _ := strings.Cut(other, "/")
	for _, name := range k.Names() {
		if strings.HasPrefix(name, domain+"/") {
			return name
		}
	}
	return k.Native
}
