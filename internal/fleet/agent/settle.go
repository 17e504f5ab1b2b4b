package agent

import (
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/rollout"
)

// verdict is what became of a sync.
type verdict struct {
	state   v1alpha1.State
	reason  rollout.Reason
	message string
	// resolved is what was applied, if it succeeded.
	resolved string
	// failedAt is when it failed for the first time, while it is tried again.
	failedAt *metav1.Time
	// policy is Orphan if what runs stays when the sync is removed.
	policy v1alpha1.DeletionPolicy
	// ask is a failure that the cluster may have caused: it must be probed.
	ask string
	// kick has Flux reconcile immediately.
	kick bool
}

// permanent are failures that have nothing to do with the cluster, and that no other try heals.
var permanent = map[string]bool{meta.BuildFailedReason: true, meta.InvalidCELExpressionReason: true}

// passing are reasons for not being ready that usually pass without an action.
var passing = map[string]bool{meta.ArtifactFailedReason: true, meta.HealthCheckCanceledReason: true, meta.ProgressingReason: true, "SourceNotReady": true}

// settle says what became of a sync whose source and Kustomization or HelmRelease are what
// is wanted. was is what was said of the same assignment before, nil if nothing was.
func settle(o *Observed, source *Source, k applied, was *v1alpha1.SyncStatus) verdict {
	v := judge(o, source, k, was)
	if v.state == v1alpha1.StateUpdating && v.failedAt == nil && was != nil {
		v.failedAt = was.FailedAt // Flux is trying again
	}
	if v.state == v1alpha1.StateUpdating && was != nil && was.State == v1alpha1.StateSucceeded && isRepointed(k) {
		return stays(was)
	}
	return v
}

// judge goes by what Flux says.
func judge(o *Observed, source *Source, k applied, was *v1alpha1.SyncStatus) verdict {
	if o.Reach.Problem != nil {
		return verdict{state: v1alpha1.StateUnreachable, reason: outcome.ReasonUnreachable, message: o.Reach.Problem.Error()}
	}
	if v, fetched := fetch(source); !fetched {
		return v
	}
	ready := readyOf(k)
	switch {
	case k.isSuspended():
		return waits(outcome.ReasonSuspended, "%s %s is suspended", k.kind(), k.GetName())
	case isKicked(k):
		return updating("Flux was asked to try again")
	case ready == nil || ready.ObservedGeneration != k.GetGeneration():
		return updating("Flux has not observed %s %s yet", k.kind(), k.GetName())
	case ready.Status == metav1.ConditionUnknown:
		return meanwhile(k, source, was)
	case ready.Status == metav1.ConditionTrue && k.runs(source):
		return succeeded(k, source)
	case ready.Status == metav1.ConditionTrue:
		return updating("Flux has not applied %s yet", source.Revision)
	case passing[ready.Reason]:
		return updating("%s", outcome.Shortened(ready.Message))
	case ready.Reason == meta.DependencyNotReadyReason:
		return waits(outcome.ReasonDependency, "%s", outcome.Shortened(ready.Message))
	default:
		return fail(o, k, ready, was)
	}
}

// fetch is not fetched while there is no artifact of the source as it is wanted.
func fetch(source *Source) (v verdict, fetched bool) {
	switch {
	case source == nil:
		return waits(outcome.ReasonSourceNotReady, "source not found"), false
	case source.Revision != "" && source.ObservedGeneration == source.Generation:
		return verdict{}, true // that it cannot be fetched again just now does no harm
	case source.isRefused():
		return waits(outcome.ReasonSourceNotReady, "source cannot be fetched: %s", outcome.Shortened(source.Ready.Message)), false
	default:
		return updating("fetching the source"), false
	}
}

// isKicked is true until Flux has done what it was asked for.
func isKicked(k applied) bool {
	asked, ok := meta.ReconcileAnnotationValue(k.GetAnnotations())
	return ok && asked != k.handledAt()
}

// meanwhile is what is said while Flux looks again: what it has found at this very
// generation and revision, or what it failed with before.
func meanwhile(k applied, source *Source, was *v1alpha1.SyncStatus) verdict {
	switch {
	case k.runs(source):
		return succeeded(k, source)
	case was != nil && was.State == v1alpha1.StateFailed:
		return verdict{state: was.State, reason: rollout.Reason(was.Reason), message: was.Message}
	default:
		return updating("Flux is applying %s", source.Revision)
	}
}

// fail says that it has failed, unless the cluster is to blame, or another try may succeed.
func fail(o *Observed, k applied, ready *metav1.Condition, was *v1alpha1.SyncStatus) verdict {
	v := blame(o, k, ready, was)
	if v.state != v1alpha1.StateFailed || isStalled(k) || isConfirmed(ready, was) {
		return v
	}
	again := updating("Flux could not apply it, and tries again: %s", v.message)
	if again.ask, again.failedAt = v.ask, &ready.LastTransitionTime; was != nil && was.FailedAt != nil {
		again.failedAt = was.FailedAt
	}
	return again
}

// isStalled reports whether Flux tries no more.
func isStalled(k applied) bool {
	stalled := apimeta.FindStatusCondition(k.conditions(), meta.StalledCondition)
	return stalled != nil && stalled.Status == metav1.ConditionTrue && stalled.ObservedGeneration == k.GetGeneration()
}

// isConfirmed is true of a failure that another try does not heal: by what it is, because Flux has
// waited for as long as it may, or because it has failed again.
func isConfirmed(ready *metav1.Condition, was *v1alpha1.SyncStatus) bool {
	switch {
	case permanent[ready.Reason] || ready.Reason == meta.HealthCheckFailedReason:
		return true
	case strings.Contains(ready.Message, invalid):
		return true
	case was == nil:
		return false
	default:
		return was.State == v1alpha1.StateFailed || was.FailedAt != nil && ready.LastTransitionTime.After(was.FailedAt.Time)
	}
}

// invalid is how Flux quotes the reason of an API server that a manifest is not valid.
var invalid = "(" + string(metav1.StatusReasonInvalid) + ")"

// blame says whether it has failed, or the cluster must be asked first.
func blame(o *Observed, k applied, ready *metav1.Condition, was *v1alpha1.SyncStatus) verdict {
	v := failed(outcome.ReasonOf(ready), "%s", outcome.Shortened(ready.Message))
	if !o.Assemblage.isRemote() || permanent[ready.Reason] {
		return v
	}
	v.ask = failureID(k, ready)
	switch {
	case was != nil && was.State == v1alpha1.StateUnreachable:
		v := updating("the cluster answers again")
		v.kick = true
		return v
	case o.Reach.Verified[v.ask]:
		return v
	case was != nil && was.State == v1alpha1.StateFailed: // and is not asked each time
		v.ask = ""
		return v
	default:
		return verdict{state: v1alpha1.StateUpdating, reason: outcome.ReasonApplying, message: "Flux could not apply it; probing the cluster", ask: v.ask}
	}
}

// failureID tells one failure from another.
func failureID(k applied, ready *metav1.Condition) string {
	return fmt.Sprintf("%s/%s/%d/%d/%s", k.GetNamespace(), k.GetName(), k.GetGeneration(), ready.LastTransitionTime.Unix(), ready.Reason)
}

func succeeded(k applied, source *Source) verdict {
	v := verdict{
		state: v1alpha1.StateSucceeded, reason: outcome.ReasonApplied, message: "applied " + source.Revision, resolved: source.resolved(),
	}
	if drift := k.drift(); drift != "" {
		v.reason, v.message = outcome.ReasonDrifted, outcome.Shortened(drift)
	}
	return v
}

func waits(reason rollout.Reason, format string, args ...any) verdict {
	return verdict{state: v1alpha1.StateWaiting, reason: reason, message: fmt.Sprintf(format, args...)}
}

func failed(reason rollout.Reason, format string, args ...any) verdict {
	return verdict{state: v1alpha1.StateFailed, reason: reason, message: fmt.Sprintf(format, args...)}
}

func updating(format string, args ...any) verdict {
	return verdict{state: v1alpha1.StateUpdating, reason: outcome.ReasonApplying, message: fmt.Sprintf(format, args...)}
}
