package vocabulary

// Labels and annotations by which StatefulSets of a group are scaled. Where a key
// may be either, the annotation wins.
var (
	// NoDownscale set to "true", as a label, forbids to lower the replicas.
	NoDownscale = Key{"spillway.dev/no-downscale", []string{"grafana.com/no-downscale"}}
	// PrepareDownscale set to "true", as a label, has Pods prepared before they are removed.
	PrepareDownscale = Key{"spillway.dev/prepare-downscale", []string{"grafana.com/prepare-downscale"}}
	// PreparesScales set to "true", as a label of a namespace, has the API server ask before
	// a Scale is lowered there.
	PreparesScales = Key{Native: "spillway.dev/prepares-scales"}
	// GuardsEvictions set to "true", as a label of a namespace with a budget, has the API server
	// refuse evictions there that no webhook has answered, also when it knows no budgets yet.
	GuardsEvictions = Key{Native: "spillway.dev/guards-evictions"}
	// PrepareDownscalePath is the path of the call that prepares a Pod.
	PrepareDownscalePath = Key{"spillway.dev/prepare-downscale-http-path", []string{"grafana.com/prepare-downscale-http-path"}}
	// PrepareDownscalePort is the port of the call that prepares a Pod.
	PrepareDownscalePort = Key{"spillway.dev/prepare-downscale-http-port", []string{"grafana.com/prepare-downscale-http-port"}}
	// PrepareDownscaleScheme is the scheme of the call that prepares a Pod, by default "http".
	PrepareDownscaleScheme = Key{Native: "spillway.dev/prepare-downscale-http-scheme"}
	// MinTimeBetweenZonesDownscale is a Go duration: how long a zone has to wait
	// after another one was scaled down.
	MinTimeBetweenZonesDownscale = Key{"spillway.dev/min-time-between-zones-downscale", []string{"grafana.com/min-time-between-zones-downscale"}}
	// LastDownscale is when rollout-operator has scaled the StatefulSet down, in
	// RFC 3339. It is read, and never written.
	LastDownscale = Key{"spillway.dev/last-downscale", []string{"grafana.com/last-downscale"}}
	// DownscaleLeader names the StatefulSet whose replicas are followed.
	DownscaleLeader = Key{"spillway.dev/rollout-downscale-leader", []string{"grafana.com/rollout-downscale-leader"}}
	// UpscaleOnlyWhenLeaderReady set to "true" scales a follower up only while all Pods of its
	// leader are ready.
	UpscaleOnlyWhenLeaderReady = Key{"spillway.dev/rollout-upscale-only-when-leader-ready", []string{"grafana.com/rollout-upscale-only-when-leader-ready"}}
	// ForceReplicas is a number of replicas that counts instead of the leader's or the mirrored
	// one.
	ForceReplicas = Key{"spillway.dev/rollout-force-replicas", []string{"grafana.com/rollout-force-replicas"}}
	// MirrorName is the name of the object whose replicas are mirrored, by its scale
	// subresource.
	MirrorName = Key{"spillway.dev/rollout-mirror-replicas-from-resource-name", []string{"grafana.com/rollout-mirror-replicas-from-resource-name"}}
	// MirrorKind is the kind of the object whose replicas are mirrored.
	MirrorKind = Key{"spillway.dev/rollout-mirror-replicas-from-resource-kind", []string{"grafana.com/rollout-mirror-replicas-from-resource-kind"}}
	// MirrorAPIVersion is the API version of the object whose replicas are mirrored.
	MirrorAPIVersion = Key{"spillway.dev/rollout-mirror-replicas-from-resource-api-version", []string{"grafana.com/rollout-mirror-replicas-from-resource-api-version"}}
	// MirrorWriteBack set to "false" keeps the mirrored object's status as it is.
	MirrorWriteBack = Key{"spillway.dev/rollout-mirror-replicas-from-resource-write-back", []string{"grafana.com/rollout-mirror-replicas-from-resource-write-back"}}
	// DelayedDownscale is a Prometheus duration: how long Pods must be prepared before they may
	// be removed.
	DelayedDownscale = Key{"spillway.dev/rollout-delayed-downscale", []string{"grafana.com/rollout-delayed-downscale"}}
	// DelayedDownscaleURL is the URL of the call that prepares Pods for a delayed downscale.
	DelayedDownscaleURL = Key{"spillway.dev/rollout-prepare-delayed-downscale-url", []string{"grafana.com/rollout-prepare-delayed-downscale-url"}}
	// Scaled is written with the replicas of a StatefulSet, and says which and when, so that
	// it is seen that another client has set them back.
	Scaled = Key{Native: "spillway.dev/scaled"}
)
