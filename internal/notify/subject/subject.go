package subject

import (
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/notify/decision"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/tracing/identity"
	"github.com/spillway-dev/spillway/rollout"
)

// The kinds with rollouts.
const (
	KindGroup           = "RolloutGroup"
	KindPolicy          = "ConfigPolicy"
	KindClusterPolicy   = "ClusterConfigPolicy"
	KindInstance        = "Instance"
	KindModule          = "Module"
	KindBootstrapModule = "BootstrapModule"
)

// Reader reads statuses.
type Reader struct {
	// Traced is true if traces are written, so that rollouts have the ids of theirs.
	Traced bool
}

// trace is the id of the trace of a rollout, empty if there is none.
func (r Reader) trace(o client.Object, rollout string, startedAt metav1.MicroTime) string {
	if !r.Traced {
		return ""
	}
	return identity.Trace(o.GetUID(), rollout, startedAt.Time)
}

// KeyOf identifies an object. A namesake is another one.
func KeyOf(kind string, o client.Object) string { return kind + "/" + string(o.GetUID()) }

// KindOf is the kind of the object that a key identifies.
func KindOf(key string) string {
	kind, _, _ := strings.Cut(key, "/")
	return kind
}

// finished sorts a history, of which the newest is the first, and says of each rollout how it
// goes: only of the last one can it be that it is stopped.
func finished(history []decision.Rollout, conditions []metav1.Condition) []decision.Rollout {
	slices.Reverse(history)
	for i := range history {
		r := &history[i]
		switch stalled := apimeta.FindStatusCondition(conditions, ring.ConditionStalled); {
		case r.Reason == string(rollout.OutcomeRolledBack):
			r.State = decision.Returned
		case i == len(history)-1 && stalled != nil && stalled.Status == metav1.ConditionTrue && (isRunning(r) || r.Reason == string(rollout.OutcomeFailed)):
			r.State, r.Reason, r.Sentence, r.At = decision.Stopped, stalled.Reason, stalled.Message, stalled.LastTransitionTime.Time
		case !isRunning(r):
			r.State = decision.Ended
		}
	}
	return history
}

// isRunning is true of a rollout without an outcome.
func isRunning(r *decision.Rollout) bool {
	return r.Reason == "" || r.Reason == string(rollout.OutcomeRunning)
}
