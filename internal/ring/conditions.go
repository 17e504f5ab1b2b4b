package ring

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/rollout"
)

// The types of the conditions of every ring.
const (
	ConditionReady       = "Ready"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
)

// Conditions say how a rollout goes, so that kstatus, kubectl wait, Helm and Flux
// understand it. At most one of the three is true.
type Conditions struct {
	Ready, Reconciling, Stalled bool
	Reason                      rollout.Reason
	Message                     string
}

// ConditionsOf are those of a phase. A rollout that has failed, or is stalled for a reason
// of the ring's own, needs a user; one that is paused waits for a user, who knows.
func ConditionsOf(phase rollout.Phase, stalled bool, reason rollout.Reason, message string) Conditions {
	c := Conditions{Ready: phase == rollout.PhaseComplete, Reason: reason, Message: message}
	c.Stalled = stalled || phase == rollout.PhaseFailed
	c.Reconciling = !c.Ready && !c.Stalled && phase != rollout.PhasePaused
	return c
}

// Set sets them in a status. The time of one that has not changed stays.
func (c Conditions) Set(on *[]metav1.Condition, generation int64, now time.Time) {
	for _, one := range []struct {
		kind string
		is   bool
	}{{ConditionReady, c.Ready}, {ConditionReconciling, c.Reconciling}, {ConditionStalled, c.Stalled}} {
		meta.SetStatusCondition(on, metav1.Condition{
			Type: one.kind, Status: kube.Truth(one.is), Reason: string(c.Reason), Message: message.Sentence(c.Message),
			ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
}
