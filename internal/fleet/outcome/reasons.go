package outcome

import (
	"slices"

	"github.com/fluxcd/pkg/apis/acl"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/rollout"
)

// The reasons of syncs, besides those that Flux gives for a failure.
const (
	// ReasonApplied: the sync has been applied.
	// Action: nothing, this is the desired state.
	ReasonApplied rollout.Reason = "Applied"
	// ReasonDrifted: the sync has been applied, and what it applied was changed by another client since, which Flux keeps.
	// Action: change it back, have Flux correct it with driftDetection.mode enabled, or name it in driftDetection.ignore.
	ReasonDrifted rollout.Reason = "Drifted"
	// ReasonApplying: Flux fetches or applies the sync, or is about to.
	// Action: nothing, it normally completes without help; if it does not, check that Flux
	// runs where the Kustomization is.
	ReasonApplying rollout.Reason = "Applying"
	// ReasonInvalidBinding: a binding is invalid, or has no usable value.
	// Action: correct the binding that the message names.
	ReasonInvalidBinding rollout.Reason = "InvalidBinding"
	// ReasonBindingNotReady: the object or field that a binding refers to does not exist.
	// Action: create the object or the field that the message names.
	ReasonBindingNotReady rollout.Reason = "BindingNotReady"
	// ReasonSourceNotReady: the source of the sync does not exist, or cannot be fetched.
	// Action: correct the source of the module, or its credentials, as the message says.
	ReasonSourceNotReady rollout.Reason = "SourceNotReady"
	// ReasonHelmMissing: a chart is to be installed where Flux has no helm-controller.
	// Action: install helm-controller where the message says, with the kinds of source-controller.
	ReasonHelmMissing rollout.Reason = "HelmKindMissing"
	// ReasonInvalid: what a sync hands through to Flux is not valid.
	ReasonInvalid = reasons.Invalid
	// ReasonWriteRefused: the API server refuses a write.
	ReasonWriteRefused = reasons.WriteRefused
	// ReasonForeign: an object that it needs has another owner.
	ReasonForeign = reasons.Foreign
	// ReasonSuspended: a user has suspended the Kustomization.
	ReasonSuspended = reasons.Suspended
	// ReasonNotAssigned: the sync has no revision; it only pins the cluster.
	// Action: nothing; spillway fleet unpin lets the cluster follow the rollout.
	ReasonNotAssigned rollout.Reason = "NotAssigned"
	// ReasonTerminating: what has the name that it needs is being deleted.
	ReasonTerminating = reasons.Terminating
	// ReasonKubeconfig: the kubeconfig of the cluster does not exist, or cannot be used.
	// Action: create or correct the Secret that the message names.
	ReasonKubeconfig rollout.Reason = "KubeconfigNotUsable"
	// ReasonUnreachable: the cluster does not answer.
	// Action: check that the API server of the cluster runs, and that the hub can reach
	// the address in its kubeconfig.
	ReasonUnreachable rollout.Reason = "ClusterUnreachable"
	// ReasonDeleting: the assemblage is being deleted.
	ReasonDeleting = reasons.Deleting
)

// The reasons that Flux gives for a Kustomization that is not ready.
const (
	// ReasonDependency: a Kustomization that this one depends on is not ready.
	// Action: check the Kustomization that the message names.
	ReasonDependency = rollout.Reason(meta.DependencyNotReadyReason)
	// ReasonBuild: kustomize cannot build the manifests.
	// Action: correct the manifests as the message says, and point the module at the
	// corrected version.
	ReasonBuild = rollout.Reason(meta.BuildFailedReason)
	// ReasonExpression: a health check of the Kustomization has an invalid CEL expression.
	// Action: correct the expression that the message names.
	ReasonExpression = rollout.Reason(meta.InvalidCELExpressionReason)
	// ReasonHealthCheck: the applied objects did not become healthy in time.
	// Action: fix the objects that the message names, on their cluster.
	ReasonHealthCheck = rollout.Reason(meta.HealthCheckFailedReason)
	// ReasonPrune: objects that are no longer wanted could not be deleted.
	// Action: grant the permission or remove the finalizer that the message names.
	ReasonPrune = rollout.Reason(meta.PruneFailedReason)
	// ReasonReconciliation: the manifests could not be applied, or Flux gave an unknown
	// reason.
	// Action: correct the manifests or the permissions as the message says.
	ReasonReconciliation = rollout.Reason(meta.ReconciliationFailedReason)
	// ReasonAccess: the source may not be used from this namespace.
	// Action: allow it in spec.accessFrom of the source, or use a source in the same
	// namespace.
	ReasonAccess = rollout.Reason(acl.AccessDeniedReason)
	// ReasonFeatureGate: the Kustomization uses a feature that is disabled in Flux.
	// Action: enable the feature gate that the message names.
	ReasonFeatureGate = rollout.Reason(meta.FeatureGateDisabledReason)
	// ReasonDisk: Flux cannot write to its disk.
	// Action: free disk space for the temporary files of kustomize-controller.
	ReasonDisk = rollout.Reason(sourcev1.DirCreationFailedReason)
)

// ReasonOf is a reason of Flux as one of ours.
func ReasonOf(ready *metav1.Condition) rollout.Reason {
	known := []rollout.Reason{
		ReasonDependency, ReasonBuild, ReasonExpression, ReasonHealthCheck, ReasonPrune, ReasonAccess, ReasonFeatureGate, ReasonDisk,
	}
	i := slices.IndexFunc(known, func(r rollout.Reason) bool { return string(r) == ready.Reason })
	if i < 0 {
		return ReasonReconciliation
	}
	return known[i]
}

// The reasons of Events.
const (
	// EventSucceeded: a sync has succeeded.
	// Action: nothing, for information only.
	EventSucceeded rollout.Reason = "SyncSucceeded"
	// EventFailed: a sync has failed.
	// Action: correct what the message says; the sync is retried automatically.
	EventFailed rollout.Reason = "SyncFailed"
	// EventWaiting: a sync waits for something, or for its cluster to answer.
	// Action: provide what the message names.
	EventWaiting rollout.Reason = "SyncWaiting"
)
