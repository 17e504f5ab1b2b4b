package decision

import (
	"time"

	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// Unrecorded is the state of a workload about which a manager has recorded nothing, by the workload alone: it is up
// to date if nothing remains to be done. Where nothing can be recorded, it must be healthy as well: it may have
// failed. Of one whose config the caller may not read, only what it got and what can be read of that is compared.
func (w *Workload) Unrecorded(now time.Time, recordable bool) ring.Waiting {
	s := ring.Waiting{Unit: w.Kind + " " + w.Name.Name, State: string(StateNotObserved), Reason: ReasonNotObserved}
	s.Does, s.Why = "is waiting", "the manager has not observed its present config yet"
	_, remains := w.unit(now, Options{})
	settled := w.IsSettled()
	if len(w.Denied) > 0 {
		settled = w.Accepted() != "" && w.Suspension.IsSettled() && len(w.Outdated()) == 0
		remains = !settled
	}
	switch {
	case settled && (w.rolling(now) || w.IsLate(now)):
		s.State, s.Reason, s.Does, s.Why = string(StateRolling), rollout.ReasonProgressing, "is updating", w.Health.Reason
		if w.IsLate(now) {
			s.State = string(StateLate)
		}
		if w.Health.Health == rollout.Failed {
			s.State, s.Reason, s.Does = string(StateLate), rollout.ReasonFailed, "failed"
		}
	case !remains && (recordable || w.Health.Health == rollout.Healthy):
		s.State, s.Reason, s.Does, s.Why = string(StateUpToDate), "", "is up to date", ""
	case len(w.Denied) == 0 && len(w.Missing) > 0:
		s.Why = w.MissingText() + "; not recorded by the manager yet"
	case !recordable:
		s.Why = "its state is not known, because ConfigRollouts cannot be read"
	case w.Accepted() == "":
		s.Why = "the manager has not recorded its config yet"
	}
	return s
}

// ChangesAt is when time alone changes what is said of a workload, zero for never.
func (w *Workload) ChangesAt(now time.Time) time.Time {
	if w.Health.Health == rollout.Healthy {
		return time.Time{}
	}
	return w.lasts(now)
}
