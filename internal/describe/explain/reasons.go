package explain

import (
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/rollout"
)

// Reasons that other packages declare.
const (
	// ReasonTerminating: it is being deleted.
	ReasonTerminating = reasons.Deleting
	// ReasonSuspended: its controller is suspended for it by a user.
	ReasonSuspended = reasons.Suspended
	// ReasonFailed: it has failed, and is not retried.
	ReasonFailed = rollout.ReasonFailed
	// ReasonConfig: a Pod lacks config that it cannot start without.
	ReasonConfig = decision.ReasonConfigMissing
)

// The reasons of the links of a chain that lie beneath what the rings observe.
const (
	// ReasonUnseen: the chain continues at an object that the caller may not or cannot
	// read.
	// Action: request the permission that the message names, or run the command that
	// explain shows.
	ReasonUnseen rollout.Reason = "CannotBeSeen"
	// ReasonNotReady: a workload, or an object of another kind, is not ready yet, or
	// not any more.
	// Action: follow the chain, and check the object that its last link names.
	ReasonNotReady rollout.Reason = "NotReady"
	// ReasonMissing: a required object does not exist.
	// Action: create it, as the command says.
	ReasonMissing rollout.Reason = "ObjectMissing"
	// ReasonKeyMissing: a ConfigMap or a Secret does not have a key that is used.
	// Action: add the key, as the command says.
	ReasonKeyMissing rollout.Reason = "KeyMissing"
	// ReasonUnschedulable: no node fits the Pod, or no scheduler processes it.
	// Action: change what the Pod requires of a node, or add a node that has it.
	ReasonUnschedulable rollout.Reason = "Unschedulable"
	// ReasonGated: a scheduling gate keeps a Pod from being scheduled.
	// Action: for the gate spillway.dev/config-missing create the config; for another gate
	// ask its owner.
	ReasonGated rollout.Reason = "SchedulingGated"
	// ReasonImage: the image of a container cannot be pulled.
	// Action: name an image that exists, or create the Secret for its registry.
	ReasonImage rollout.Reason = "ImageUnavailable"
	// ReasonCrash: a container crashes repeatedly.
	// Action: read its last log, as the command says.
	ReasonCrash rollout.Reason = "ContainerCrashes"
	// ReasonMemory: a container exceeded its memory limit.
	// Action: raise the limit, or find out what uses the memory.
	ReasonMemory rollout.Reason = "OutOfMemory"
	// ReasonProbe: a container runs, and its readiness probe fails.
	// Action: read its log; check that the probe requests what it serves.
	ReasonProbe rollout.Reason = "ProbeFails"
	// ReasonInit: an init container has failed.
	// Action: read its log, as the command says.
	ReasonInit rollout.Reason = "InitContainerFails"
	// ReasonStuck: a Pod of an earlier revision is not ready, and its StatefulSet waits for
	// it before it updates.
	// Action: delete the Pod, as the command says; it is created at the present revision.
	// spillway.dev/stuck-pods: Replace on the StatefulSet replaces those that were never ready.
	ReasonStuck rollout.Reason = "PodStuck"
	// ReasonFinalizer: a finalizer must be removed before an object can be deleted.
	// Action: find out why the controller that has set the finalizer does not remove it.
	ReasonFinalizer rollout.Reason = "FinalizerLeft"
	// ReasonNodeLost: a node is gone, or does not respond.
	// Action: bring the node back, or delete its Pods by force once it is known to be off.
	ReasonNodeLost rollout.Reason = "NodeLost"
	// ReasonEvicted: a node has evicted a Pod.
	// Action: check what the node has run out of; a Pod with a controller is replaced.
	ReasonEvicted rollout.Reason = "PodEvicted"
	// ReasonQuota: a quota is exhausted.
	// Action: raise the quota, or delete what uses it.
	ReasonQuota rollout.Reason = "QuotaExceeded"
	// ReasonRefused: the API server refuses a write, or a policy or a webhook does.
	ReasonRefused = reasons.WriteRefused
	// ReasonWebhook: a webhook that must be called does not answer.
	// Action: start its server again, or delete its configuration if the server was
	// removed.
	ReasonWebhook rollout.Reason = "WebhookDown"
	// ReasonEndpoints: a Service has no ready endpoint.
	// Action: find out why the Pods that it selects are not ready, or whether it selects any.
	ReasonEndpoints rollout.Reason = "NoEndpoints"
	// ReasonUnbound: no volume is bound to a claim.
	// Action: find out why none is provisioned.
	ReasonUnbound rollout.Reason = "ClaimUnbound"
	// ReasonManagerDown: an object waits for the manager, and no manager runs.
	// Action: start it again; what waits continues automatically.
	ReasonManagerDown rollout.Reason = "ManagerDown"
	// ReasonNotObserved: a controller has not observed the generation of an object.
	ReasonNotObserved = reasons.NotObserved
	// ReasonNoBudget: a disruption budget allows no disruption.
	// Action: wait until more Pods are healthy, or allow more disruptions.
	ReasonNoBudget rollout.Reason = "NoDisruptionAllowed"
	// ReasonSource: what Flux is to apply cannot be fetched.
	// Action: check that the source exists, and that its Secret grants access.
	ReasonSource rollout.Reason = "SourceUnavailable"
)
