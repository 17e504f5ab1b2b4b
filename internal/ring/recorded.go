package ring

import (
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/record"
	"github.com/spillway-dev/spillway/rollout"
)

// PhaseUnseen is the phase of an object of which no manager has recorded what it is now.
const PhaseUnseen rollout.Phase = "Unseen"

// Recorded is what the status of an object with a record says.
type Recorded struct {
	// Generation is that of the object, Observed that of which the status speaks.
	Generation, Observed int64
	Rollout              *record.Rollout
	Conditions           []metav1.Condition
	Since                *metav1.Time
}

// Summary is a record in one sentence. The times are nil if they are not known.
type Summary struct {
	Phase                  rollout.Phase
	Reason                 rollout.Reason
	Sentence               string
	Since, Until, Deadline *time.Time
}

// Summary sums a record up. One of another generation is never taken for that of the present one.
func (r *Recorded) Summary() Summary {
	switch {
	case r.Observed == 0:
		return Summary{Phase: PhaseUnseen, Sentence: "the manager has not observed it yet"}
	case r.Observed != r.Generation:
		return Summary{Phase: PhaseUnseen, Sentence: "the manager has not observed the current spec; check that the manager is running"}
	case r.Rollout == nil:
		return Summary{Phase: PhaseUnseen, Sentence: "the manager has not recorded the rollout yet; check that its version is not older than that of this program"}
	}
	s := Summary{Phase: rollout.Phase(r.Rollout.Phase), Reason: rollout.Reason(r.Rollout.Reason), Sentence: r.Rollout.WaitingFor}
	if ready := apimeta.FindStatusCondition(r.Conditions, ConditionReady); s.Sentence == "" && ready != nil {
		s.Sentence = ready.Message
	}
	if s.Phase == rollout.PhaseComplete {
		return s
	}
	if r.Since != nil {
		s.Since = &r.Since.Time
	}
	if c := TellingOf(r.Rollout); c != nil {
		s.Until, s.Deadline = timeOrNil(c.Until), timeOrNil(c.Deadline)
	}
	return s
}

// TellingOf is the cause that says most of the whole, nil if nothing waits or something moves next.
func TellingOf(r *record.Rollout) *record.Cause {
	if r == nil || len(r.Causes) == 0 {
		return nil
	}
	for i := range r.Causes {
		if r.Causes[i].State == StateNext {
			return nil
		}
	}
	return &r.Causes[0]
}

// UnitOf are the stage and the name of a unit of a record, which is STAGE/NAME, or NAME without a stage.
func UnitOf(unit string) (stage, name string) {
	if stage, name, isIn := strings.Cut(unit, "/"); isIn {
		return stage, name
	}
	return "", unit
}

func timeOrNil(t *metav1.MicroTime) *time.Time {
	if t == nil {
		return nil
	}
	return &t.Time
}
