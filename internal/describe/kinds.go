package describe

// KindCluster is a cluster of the fleet, which is no object of its own.
const KindCluster = "Cluster"

// The kinds that chains go through.
const (
	KindPod           = "Pod"
	KindReplicaSet    = "ReplicaSet"
	KindJob           = "Job"
	KindCronJob       = "CronJob"
	KindConfigMap     = "ConfigMap"
	KindSecret        = "Secret"
	KindClaim         = "PersistentVolumeClaim"
	KindClass         = "StorageClass"
	KindService       = "Service"
	KindNode          = "Node"
	KindQuota         = "ResourceQuota"
	KindAccount       = "ServiceAccount"
	KindPDB           = "PodDisruptionBudget"
	KindZoneBudget    = "ZoneAwarePodDisruptionBudget"
	KindGroup         = "RolloutGroup"
	KindGate          = "RolloutGate"
	KindPolicy        = "ConfigPolicy"
	KindClusterPolicy = "ClusterConfigPolicy"
	KindRevision      = "ModuleRevision"
	KindInstance      = "Instance"
	KindVersion       = "OperatorVersion"
	KindModule        = "Module"
	KindBootstrap     = "BootstrapModule"
	KindProxy         = "ProxyAssemblage"
	KindRemote        = "RemoteAssemblage"
	KindKustomization = "Kustomization"
	KindLease         = "Lease"

	// What is no object.
	KindZone    = "Zone"
	KindRelease = "Release"
	KindStage   = "Stage"
	KindStep    = "Step"
	KindLock    = "Lock"
	KindManager = "Manager"
)

// NoObjects are the words for what is no object.
var NoObjects = []string{KindCluster, KindZone, KindRelease, KindStage, KindStep, KindLock, KindManager}
