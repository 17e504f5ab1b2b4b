package standing

import "github.com/spillway-dev/spillway/internal/rollout"

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

// The reasons that stand beneath what the rings know.
const (
	// ReasonUnseen: the caller cannot look at it.
	ReasonUnseen rollout.Reason = "Unseen"
	// ReasonNotReady: it does not serve yet, or does not any more.
	ReasonNotReady rollout.Reason = "NotReady"
	// ReasonMissing: it is not there.
	ReasonMissing rollout.Reason = "Missing"
	// ReasonKeyMissing: it is there, and has not the key that is asked of it.
	ReasonKeyMissing rollout.Reason = "KeyMissing"
	// ReasonUnschedulable: there is no node for it.
	ReasonUnschedulable rollout.Reason = "Unschedulable"
	// ReasonGated: a scheduling gate keeps it from being scheduled.
	ReasonGated rollout.Reason = "SchedulingGated"
	// ReasonImage: its image cannot be pulled.
	ReasonImage rollout.Reason = "ImageUnavailable"
	// ReasonCrash: a container of it ends again and again.
	ReasonCrash rollout.Reason = "CrashLoop"
	// ReasonMemory: a container of it has used more memory than it may.
	ReasonMemory rollout.Reason = "OutOfMemory"
	// ReasonProbe: it runs, and does not answer its readiness probe.
	ReasonProbe rollout.Reason = "ProbeFails"
	// ReasonInit: an init container of it has not ended well.
	ReasonInit rollout.Reason = "InitFails"
	// ReasonTerminating: it is being deleted.
	ReasonTerminating rollout.Reason = "Terminating"
	// ReasonFinalizer: somebody has to do something before it may go.
	ReasonFinalizer rollout.Reason = "FinalizerLeft"
	// ReasonNodeLost: its node does not answer.
	ReasonNodeLost rollout.Reason = "NodeLost"
	// ReasonEvicted: its node has thrown it out.
	ReasonEvicted rollout.Reason = "Evicted"
	// ReasonFailed: it has failed, and is not tried again.
	ReasonFailed rollout.Reason = "HasFailed"
	// ReasonQuota: a quota is used up.
	ReasonQuota rollout.Reason = "QuotaExceeded"
	// ReasonRefused: the API server refuses it.
	ReasonRefused rollout.Reason = "Refused"
	// ReasonWebhook: a webhook is asked, and nobody answers.
	ReasonWebhook rollout.Reason = "WebhookDown"
	// ReasonEndpoints: nobody serves it.
	ReasonEndpoints rollout.Reason = "NoEndpoints"
	// ReasonUnbound: no volume is bound to it.
	ReasonUnbound rollout.Reason = "Unbound"
	// ReasonManagerDown: no manager is at work.
	ReasonManagerDown rollout.Reason = "ManagerDown"
	// ReasonNotObserved: its controller has not looked at it as it is now.
	ReasonNotObserved rollout.Reason = "NotObserved"
	// ReasonHeld: the lock is held.
	ReasonHeld rollout.Reason = "LockHeld"
	// ReasonUndecided: a gate is open to be decided.
	ReasonUndecided rollout.Reason = "Undecided"
	// ReasonNoBudget: nothing may be taken down.
	ReasonNoBudget rollout.Reason = "NoDisruptionAllowed"
	// ReasonSource: what is to be applied cannot be fetched.
	ReasonSource rollout.Reason = "SourceUnavailable"
	// ReasonUnreachable: the cluster does not answer.
	ReasonUnreachable rollout.Reason = "Unreachable"
	// ReasonSuspended: somebody has told its controller to leave it alone.
	ReasonSuspended rollout.Reason = "Suspended"
)
