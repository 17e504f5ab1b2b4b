package describe

// KindCluster is a cluster of the fleet, which is no object of its own.
const KindCluster = "Cluster"

// The kinds that chains go through.
const (
	kindPod           = "Pod"
	kindReplicaSet    = "ReplicaSet"
	kindJob           = "Job"
	kindConfigMap     = "ConfigMap"
	kindSecret        = "Secret"
	kindClaim         = "PersistentVolumeClaim"
	kindClass         = "StorageClass"
	kindService       = "Service"
	kindNode          = "Node"
	kindQuota         = "ResourceQuota"
	kindAccount       = "ServiceAccount"
	kindPDB           = "PodDisruptionBudget"
	kindZoneBudget    = "ZoneAwarePodDisruptionBudget"
	kindGroup         = "RolloutGroup"
	kindGate          = "RolloutGate"
	kindRevision      = "ModuleRevision"
	kindInstance      = "Instance"
	kindVersion       = "OperatorVersion"
	kindModule        = "Module"
	kindBootstrap     = "BootstrapModule"
	kindProxy         = "ProxyAssemblage"
	kindRemote        = "RemoteAssemblage"
	kindAssemblage    = "Assemblage"
	kindKustomization = "Kustomization"
	kindLease         = "Lease"

	// What is no object.
	kindZone    = "Zone"
	kindStage   = "Stage"
	kindStep    = "Step"
	kindLock    = "Lock"
	kindManager = "Manager"
)

// noObjects are the words for what is no object.
var noObjects = []string{KindCluster, kindZone, kindStage, kindStep, kindLock, kindManager}
