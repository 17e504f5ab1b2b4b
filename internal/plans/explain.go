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
	"github.com/spillway-dev/spillway/api/record"
	"github.com/spillway-dev/spillway/internal/plans/decision"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// The phases that the ring knows besides those of the engine.
const (
	// PhaseStalled: a user must fix something first.
	PhaseStalled = decision.PhaseStalled
	// PhaseUnseen: the manager has not observed the current spec.
	PhaseUnseen = ring.PhaseUnseen
)

// Explanation is the state of an Instance: one sentence, and then the facts.
type Explanation struct {
	Namespace       string        `json:"namespace"`
	Name            string        `json:"name"`
	OperatorVersion string        `json:"operatorVersion"`
	Phase           rollout.Phase `json:"phase"`
	// Reason is why it is not complete; of a complete Instance it is [decision.ReasonIdle].
	Reason rollout.Reason `json:"reason,omitempty"`
	// Sentence is the one of the status.
	Sentence string     `json:"sentence"`
	Since    *time.Time `json:"since,omitempty"`
	// Pause is that its plans are paused, nil if they are not.
	Pause *rollout.Pause `json:"-"`
	// Plan is the one that is running, or the last one that ran; UID, Cause, Started and
	// Ended are of that execution.
	Plan    string                  `json:"plan,omitempty"`
	UID     types.UID               `json:"uid,omitempty"`
	Cause   string                  `json:"cause,omitempty"`
	Started *time.Time              `json:"started,omitempty"`
	Ended   *time.Time              `json:"ended,omitempty"`
	Status  v1beta1.ExecutionStatus `json:"status,omitempty"`
	Phases  []v1beta1.PhaseStatus   `json:"phases,omitempty"`
	History []v1beta1.PastExecution `json:"history,omitempty"`
	// Rollout is the record that the manager has written, nil if there is none yet.
	Rollout *record.Rollout `json:"rollout,omitempty"`
	// Drift are objects that differ from what was applied, nil if there are none.
	Drift *v1beta1.Drift `json:"drift,omitempty"`
	// Forecast is when the plan ends, as the last step said.
	Forecast *v1beta1.Forecast `json:"forecast,omitempty"`
}

// ErrNotFound is returned for an Instance that does not exist.
var ErrNotFound = errors.New("not found")

// Explain reads the state of an Instance, with the permissions of the caller and one
// request. The status is what the manager last wrote; its messages are at most a few
// seconds old.
func Explain(ctx context.Context, reader client.Reader, name types.NamespacedName) (Explanation, error) {
	i := &v1beta1.Instance{}
	err := reader.Get(ctx, name, i)
	switch {
	case apimeta.IsNoMatchError(err):
		return Explanation{}, fmt.Errorf("instance/%s: the kind is not installed; install it with: spillway install", name.Name)
	case apierrors.IsNotFound(err):
		return Explanation{}, fmt.Errorf("Instance %s in namespace %s %w", name.Name, name.Namespace, ErrNotFound) //nolint:staticcheck // a kind
	case err != nil:
		return Explanation{}, fmt.Errorf("get Instance %s: %w", name.Name, err)
	}
	return ExplanationOf(i), nil
}

// ExplanationOf is [Explain] for an Instance that was read before.
func ExplanationOf(i *v1beta1.Instance) Explanation {
	s := &i.Status
	e := Explanation{
		Namespace: i.Namespace, Name: i.Name, OperatorVersion: i.Spec.OperatorVersion.Name,
		Sentence: s.WaitingFor, History: s.History, Drift: s.Drift, Forecast: s.Forecast, Rollout: s.Rollout,
	}
	if vocabulary.Paused.Get(i.Annotations) == "true" {
		e.Pause = &rollout.Pause{}
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
	if ready := apimeta.FindStatusCondition(s.Conditions, ring.ConditionReady); ready != nil {
		e.Reason = rollout.Reason(ready.Reason)
	}
	e.summarize(i)
	return e
}

// summarize finds the phase, and a sentence where the status has none.
func (e *Explanation) summarize(i *v1beta1.Instance) {
	switch e.Phase = e.phase(i); {
	case e.Phase == PhaseUnseen:
		e.Sentence = "the manager has not observed the current spec; check that the manager is running"
	case e.Phase == rollout.PhasePaused:
		e.Reason = rollout.ReasonPaused
	case e.Phase == rollout.PhaseWaiting && e.Reason == decision.ReasonInProgress:
		e.Reason = rollout.ReasonRetry
	}
	if e.Sentence == "" {
		e.Sentence = decision.Idle(e.Drift)
	}
}

// phase is the state of the Instance, for all that show it or wait for it. It may be
// other than Complete although no plan is running.
func (e *Explanation) phase(i *v1beta1.Instance) rollout.Phase {
	if i.Status.ObservedGeneration != i.Generation {
		return PhaseUnseen
	}
	return decision.PhaseOf(&i.Status, e.Pause != nil)
}
