package vocabulary

// Labels and annotations by which StatefulSets of a group are scaled. Where a key
// may be either, the annotation wins.
var (
	// NoDownscale set to "true", as a label, forbids to lower the replicas.
	NoDownscale = Key{"spillway.dev/no-downscale", []string{"grafana.com/no-downscale"}}
	// PrepareDownscale set to "true", as a label, makes Pods be told before they go.
	PrepareDownscale = Key{"spillway.dev/prepare-downscale", []string{"grafana.com/prepare-downscale"}}
	// PreparesScales set to "true", as a label of a namespace, has the API server ask before
	// a Scale is lowered there.
	PreparesScales = Key{Native: "spillway.dev/prepares-scales"}
	// PrepareDownscalePath and PrepareDownscalePort are where Pods are called.
	PrepareDownscalePath = Key{"spillway.dev/prepare-downscale-http-path", []string{"grafana.com/prepare-downscale-http-path"}}
	PrepareDownscalePort = Key{"spillway.dev/prepare-downscale-http-port", []string{"grafana.com/prepare-downscale-http-port"}}
	// PrepareDownscaleScheme is "http", the default, or "https".
	PrepareDownscaleScheme = Key{Native: "spillway.dev/prepare-downscale-http-scheme"}
	// MinTimeBetweenZonesDownscale is a Go duration: how long a zone has to wait
	// after another one was scaled down. A label or an annotation.
	MinTimeBetweenZonesDownscale = Key{"spillway.dev/min-time-between-zones-downscale", []string{"grafana.com/min-time-between-zones-downscale"}}
	// LastDownscale is when rollout-operator has scaled the StatefulSet down, in
	// RFC 3339. It is read, and never written.
	LastDownscale = Key{"spillway.dev/last-downscale", []string{"grafana.com/last-downscale"}}
	// DownscaleLeader names the StatefulSet whose replicas are followed.
	DownscaleLeader = Key{"spillway.dev/rollout-downscale-leader", []string{"grafana.com/rollout-downscale-leader"}}
	// UpscaleOnlyWhenLeaderReady set to "true" makes a follower wait with going up
	// until all Pods of its leader are ready.
	UpscaleOnlyWhenLeaderReady = Key{"spillway.dev/rollout-upscale-only-when-leader-ready", []string{"grafana.com/rollout-upscale-only-when-leader-ready"}}
	// ForceReplicas is a number that counts instead of the leader's or the mirrored one.
	ForceReplicas = Key{"spillway.dev/rollout-force-replicas", []string{"grafana.com/rollout-force-replicas"}}
	// MirrorName, MirrorKind and MirrorAPIVersion name the object whose replicas are
	// mirrored, by its scale subresource.
	MirrorName       = Key{"spillway.dev/rollout-mirror-replicas-from-resource-name", []string{"grafana.com/rollout-mirror-replicas-from-resource-name"}}
	MirrorKind       = Key{"spillway.dev/rollout-mirror-replicas-from-resource-kind", []string{"grafana.com/rollout-mirror-replicas-from-resource-kind"}}
	MirrorAPIVersion = Key{"spillway.dev/rollout-mirror-replicas-from-resource-api-version", []string{"grafana.com/rollout-mirror-replicas-from-resource-api-version"}}
	// MirrorWriteBack set to "false" keeps the mirrored object's status as it is.
	MirrorWriteBack = Key{"spillway.dev/rollout-mirror-replicas-from-resource-write-back", []string{"grafana.com/rollout-mirror-replicas-from-resource-write-back"}}
	// DelayedDownscale is a Prometheus duration: how long Pods have to have been
	// prepared before they may go. DelayedDownscaleURL is where they are called.
	DelayedDownscale    = Key{"spillway.dev/rollout-delayed-downscale", []string{"grafana.com/rollout-delayed-downscale"}}
	DelayedDownscaleURL = Key{"spillway.dev/rollout-prepare-delayed-downscale-url", []string{"grafana.com/rollout-prepare-delayed-downscale-url"}}
)
