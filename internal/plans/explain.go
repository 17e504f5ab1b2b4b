package plans

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// The phases that the ring knows besides those of the engine.
const (
	// PhaseStalled: something is wrong that a person has to fix.
	PhaseStalled rollout.Phase = "Stalled"
	// PhaseUnseen: the manager has not looked at the spec as it is now.
	PhaseUnseen rollout.Phase = "Unseen"
)

// Explanation says in one sentence how an Instance stands, and then the facts.
type Explanation struct {
	Namespace       string        `json:"namespace"`
	Name            string        `json:"name"`
	OperatorVersion string        `json:"operatorVersion"`
	Phase           rollout.Phase `json:"phase"`
	// Reason is why it is not complete; what is complete has that for its reason.
	Reason rollout.Reason `json:"reason,omitempty"`
	// Sentence is the one that the status has.
	Sentence string     `json:"sentence"`
	Since    *time.Time `json:"since,omitempty"`
	// Plan is the one that runs, or the last one that ran; UID, Cause and Changed are
	// of that execution.
	Plan    string                  `json:"plan,omitempty"`
	UID     types.UID               `json:"uid,omitempty"`
	Cause   string                  `json:"cause,omitempty"`
	Started *time.Time              `json:"started,omitempty"`
	Ended   *time.Time              `json:"ended,omitempty"`
	Status  v1beta1.ExecutionStatus `json:"status,omitempty"`
	Phases  []v1beta1.PhaseStatus   `json:"phases,omitempty"`
	History []v1beta1.PastExecution `json:"history,omitempty"`
}

// ErrNotFound is returned for an Instance that does not exist.
var ErrNotFound = errors.New("no such Instance")

// Explain says how an Instance stands, with the caller's own permissions and
// nothing but one read. The status is the manager's word, and at most a few
// seconds behind it.
func Explain(ctx context.Context, reader client.Reader, name types.NamespacedName) (Explanation, error) {
	i := &v1beta1.Instance{}
	err := reader.Get(ctx, name, i)
	switch {
	case apimeta.IsNoMatchError(err):
		return Explanation{}, errors.New("this cluster does not know Instances; install them with spillway install --rings=plans")
	case apierrors.IsNotFound(err):
		return Explanation{}, fmt.Errorf("Instance %s in namespace %s: %w", name.Name, name.Namespace, ErrNotFound) //nolint:staticcheck // a kind
	case err != nil:
		return Explanation{}, fmt.Errorf("get Instance %s: %w", name.Name, err)
	}
	return ExplanationOf(i), nil
}

// ExplanationOf is [Explain] for an Instance that was read already.
func ExplanationOf(i *v1beta1.Instance) Explanation {
	s := &i.Status
	e := Explanation{
		Namespace: i.Namespace, Name: i.Name, OperatorVersion: i.Spec.OperatorVersion.Name,
		Sentence: s.WaitingFor, History: s.History,
	}
	if s.Since != nil {
		e.Since = &s.Since.Time
	}
	if x := s.Execution; x != nil {
		e.Plan, e.UID, e.Cause, e.Started = x.Plan, x.UID, causeText(x), &x.StartedAt.Time
		if x.FinishedAt != nil {
			e.Ended = &x.FinishedAt.Time
		}
		e.Status, e.Phases = s.PlanStatus[x.Plan].Status, s.PlanStatus[x.Plan].Phases
	}
	if ready := apimeta.FindStatusCondition(s.Conditions, ConditionReady); ready != nil {
		e.Reason = rollout.Reason(ready.Reason)
	}
	e.summarise(i)
	return e
}

// summarise finds the phase, and a sentence where the status has none.
func (e *Explanation) summarise(i *v1beta1.Instance) {
	switch e.Phase = e.phase(i); {
	case e.Phase == PhaseUnseen:
		e.Sentence = "the manager has not looked at the spec as it is now; see whether it runs"
	case e.Phase == rollout.PhasePaused:
		e.Reason = rollout.ReasonPaused
	case e.Phase == rollout.PhaseWaiting && e.Reason == ReasonInProgress:
		e.Reason = rollout.ReasonRetry
	}
	if e.Sentence == "" {
		e.Sentence = "nothing is to be done"
	}
}

// phase is how the Instance stands, for everybody who shows it or waits for it. That no
// plan runs does not mean that all is well.
func (e *Explanation) phase(i *v1beta1.Instance) rollout.Phase {
	s := &i.Status
	switch isActive := s.AggregatedStatus.ActivePlan != ""; {
	case s.ObservedGeneration != i.Generation:
		return PhaseUnseen
	case apimeta.IsStatusConditionTrue(s.Conditions, ConditionStalled):
		return PhaseStalled
	case !isActive && e.Reason == ReasonIdle:
		return rollout.PhaseComplete
	case isActive && vocabulary.Paused.Get(i.Annotations) == "true":
		return rollout.PhasePaused
	case !isActive, e.Reason != ReasonInProgress, e.isTriedAgain():
		return rollout.PhaseWaiting
	default:
		return rollout.PhaseProgressing
	}
}

// isTriedAgain is true if a step has failed and is tried again later, and no other moves.
func (e *Explanation) isTriedAgain() bool {
	failed := false
	for i := range e.Phases {
		for j := range e.Phases[i].Steps {
			switch e.Phases[i].Steps[j].Status {
			case v1beta1.InProgress:
				return false
			case v1beta1.Error:
				failed = true
			case v1beta1.NeverRun, v1beta1.Pending, v1beta1.Complete, v1beta1.FatalError:
			}
		}
	}
	return failed
}
