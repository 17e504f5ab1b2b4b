package chain

import (
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/rollout"
)

// What others have a word for already.
const (
	// ReasonTerminating: it is being deleted.
	ReasonTerminating = reasons.Deleting
	// ReasonSuspended: somebody has told its controller to leave it alone.
	ReasonSuspended = reasons.Suspended
	// ReasonFailed: it has failed, and is not tried again.
	ReasonFailed = rollout.ReasonFailed
	// ReasonConfig: a Pod lacks config that it cannot start without.
	ReasonConfig = config.ReasonConfigMissing
)

// The reasons of the links of a chain that lie beneath what the rings know of.
const (
	// ReasonUnseen: the chain goes on where the caller may not look, or cannot.
	// Action: ask for the permission that the message names, or ask again where the
	// command says.
	ReasonUnseen rollout.Reason = "CannotBeSeen"
	// ReasonNotReady: a workload, or an object of another kind, is not ready yet, or
	// not any more.
	// Action: follow the chain; at its end, look at the object that it names.
	ReasonNotReady rollout.Reason = "NotReady"
	// ReasonMissing: an object that is needed is not there.
	// Action: create it, as the command says.
	ReasonMissing rollout.Reason = "ObjectMissing"
	// ReasonKeyMissing: a ConfigMap or a Secret has not the key that is asked of it.
	// Action: add the key, as the command says.
	ReasonKeyMissing rollout.Reason = "KeyMissing"
	// ReasonUnschedulable: there is no node for a Pod, or nobody who looks for one.
	// Action: change what the Pod asks of a node, or add a node that has it.
	ReasonUnschedulable rollout.Reason = "Unschedulable"
	// ReasonGated: a scheduling gate keeps a Pod from being scheduled.
	// Action: for the gate spillway.dev/config-missing create the config; for another
	// ask whoever has set it.
	ReasonGated rollout.Reason = "SchedulingGated"
	// ReasonImage: the image of a container cannot be pulled.
	// Action: name an image that is there, or create the Secret for its registry.
	ReasonImage rollout.Reason = "ImageUnavailable"
	// ReasonCrash: a container ends again and again.
	// Action: read its last log, as the command says.
	ReasonCrash rollout.Reason = "ContainerCrashes"
	// ReasonMemory: a container has used more memory than it may.
	// Action: raise its limit, or find out what it needs the memory for.
	ReasonMemory rollout.Reason = "OutOfMemory"
	// ReasonProbe: a container runs, and does not answer its readiness probe.
	// Action: read its log; see whether the probe asks for what it serves.
	ReasonProbe rollout.Reason = "ProbeFails"
	// ReasonInit: an init container has not ended well.
	// Action: read its log, as the command says.
	ReasonInit rollout.Reason = "InitContainerFails"
	// ReasonFinalizer: somebody has to do something before an object may go.
	// Action: see why whoever has set the finalizer does not remove it.
	ReasonFinalizer rollout.Reason = "FinalizerLeft"
	// ReasonNodeLost: a node is not there any more, or does not answer.
	// Action: bring the node back, or delete its Pods by force once it is known to be off.
	ReasonNodeLost rollout.Reason = "NodeLost"
	// ReasonEvicted: a node has thrown a Pod out.
	// Action: see what the node has run out of; a Pod with a controller is replaced.
	ReasonEvicted rollout.Reason = "PodEvicted"
	// ReasonQuota: a quota is used up.
	// Action: raise the quota, or make room.
	ReasonQuota rollout.Reason = "QuotaExceeded"
	// ReasonRefused: the API server refuses a write, or a policy or a webhook does.
	ReasonRefused = reasons.WriteRefused
	// ReasonWebhook: a webhook has to be asked, and nobody answers.
	// Action: bring its server back, or, if there is none any more, delete its
	// configuration.
	ReasonWebhook rollout.Reason = "WebhookDown"
	// ReasonEndpoints: a Service has no endpoint that is ready.
	// Action: see why the Pods that it selects are not ready, or whether it selects any.
	ReasonEndpoints rollout.Reason = "NoEndpoints"
	// ReasonUnbound: no volume is bound to a claim.
	// Action: see why none is provisioned.
	ReasonUnbound rollout.Reason = "ClaimUnbound"
	// ReasonManagerDown: it is the manager's turn, and no manager is at work.
	// Action: bring it back; what waits goes on by itself.
	ReasonManagerDown rollout.Reason = "ManagerDown"
	// ReasonNotObserved: a controller has not looked at an object as it is now.
	// Action: see whether that controller runs.
	ReasonNotObserved rollout.Reason = "NotObserved"
	// ReasonHeld: the lock of a group is held.
	// Action: nothing, it is given back or expires, unless whoever holds it is gone.
	ReasonHeld rollout.Reason = "LockHeld"
	// ReasonUndecided: a gate waits for a decision.
	// Action: decide it, as the command says.
	ReasonUndecided rollout.Reason = "GateUndecided"
	// ReasonNoBudget: a disruption budget lets no Pod go.
	// Action: wait until more Pods are healthy, or allow more to be down.
	ReasonNoBudget rollout.Reason = "NoDisruptionAllowed"
	// ReasonSource: what Flux is to apply cannot be fetched.
	// Action: see whether the source is there, and whether its Secret opens it.
	ReasonSource rollout.Reason = "SourceUnavailable"
	// ReasonUnreachable: a cluster of the fleet does not answer.
	// Action: see whether its API server runs, and whether its kubeconfig is up to date.
	ReasonUnreachable rollout.Reason = "ClusterSilent"
)
