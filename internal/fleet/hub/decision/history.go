package decision

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/estimate"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// timedMost is of how many rollouts at most it is remembered how long their stages took.
const timedMost = 5

// history is how the last rollouts went; rows are the stages of this one.
func (d *decision) history(phase rollout.Phase, rows []v1alpha1.StageStatus) []v1alpha1.PastRollout {
	old := d.o.Module.Status.History
	if len(d.problems) > 0 || len(d.members) == 0 {
		return old
	}
	entries := make([]rollout.Entry, len(old))
	for i := range old {
		entries[i] = entryOf(&old[i])
	}
	entries = rollout.Advance(entries, d.target, phase, d.o.Now, historyMost)
	history := make([]v1alpha1.PastRollout, len(entries))
	for i, e := range entries {
		history[i] = v1alpha1.PastRollout{Revision: e.Revision, StartedAt: metav1.NewMicroTime(e.StartedAt), Outcome: string(e.Outcome)}
		if !e.EndedAt.IsZero() {
			history[i].FinishedAt = new(metav1.NewMicroTime(e.EndedAt))
		}
		if at := slices.IndexFunc(old, func(o v1alpha1.PastRollout) bool { return o.StartedAt.Equal(&history[i].StartedAt) }); at >= 0 {
			history[i].Stages, history[i].Message, history[i].ChangedBy, history[i].UndoneBy = old[at].Stages, old[at].Message, old[at].ChangedBy, old[at].UndoneBy
		}
	}
	d.attribute(old, history)
	d.time(old, history, rows)
	return history
}

// attribute says of a rollout that begins who has made its change, and of one that was ended before it was complete who
// has ended it.
func (d *decision) attribute(old, history []v1alpha1.PastRollout) {
	for i := range history {
		if history[i].Outcome == string(rollout.OutcomeRolledBack) {
			history[i].UndoneBy = kube.FieldOwner
		}
	}
	if len(history) > 0 && (len(old) == 0 || !history[0].StartedAt.Equal(&old[0].StartedAt)) { // it begins
		history[0].ChangedBy = d.changedBy(history[1:])
		if len(history) > 1 && history[1].UndoneBy == "" && history[1].Outcome != string(rollout.OutcomeComplete) {
			history[1].UndoneBy = history[0].ChangedBy
		}
	}
}

// changedBy is who has made the change of a rollout that begins, after those before.
func (d *decision) changedBy(before []v1alpha1.PastRollout) string {
	s := d.o.Module.Steered
	if s != nil && s.Verb == model.VerbRollback && s.Revision == d.target && (len(before) == 0 || s.At.After(before[0].StartedAt.Time)) {
		return message.Cut(s.By, ring.NameLength)
	}
	return d.o.Module.Writer
}

func entryOf(past *v1alpha1.PastRollout) rollout.Entry {
	e := rollout.Entry{Revision: past.Revision, StartedAt: past.StartedAt.Time, Outcome: rollout.Outcome(past.Outcome)}
	if past.FinishedAt != nil {
		e.EndedAt = past.FinishedAt.Time
	}
	return e
}

// time notes of a rollout that has just completed how long its stages took.
func (d *decision) time(old, history []v1alpha1.PastRollout, rows []v1alpha1.StageStatus) {
	if !isComplete(history) || isComplete(old) && old[0].StartedAt.Equal(&history[0].StartedAt) {
		return
	}
	for i := range rows {
		if r := &rows[i]; r.StartedAt != nil {
			ended := cmp.Or(r.FinishedAt, new(metav1.NewMicroTime(d.o.Now))) // failures that are tolerated
			history[0].Stages = append(history[0].Stages, v1alpha1.PastStage{Name: r.Name, StartedAt: *r.StartedAt, FinishedAt: *ended})
		}
	}
	timed := 0
	for i := range history {
		if len(history[i].Stages) == 0 {
			continue
		}
		if timed++; timed > timedMost {
			history[i].Stages = nil
		}
	}
}

// isComplete is true if the newest rollout is complete.
func isComplete(history []v1alpha1.PastRollout) bool {
	return len(history) > 0 && history[0].Outcome == string(rollout.OutcomeComplete)
}

// isUnderWay is true while a new revision is rolled out, unless it has failed or the module is
// invalid.
func (d *decision) isUnderWay() bool {
	phase := d.phase()
	return d.isNews() && !d.isComplete() && (phase == rollout.PhaseProgressing || phase == rollout.PhaseWaiting || phase == rollout.PhasePaused)
}

// forecast is when the rollout ends, by how long the stages took in the last ones; nil where
// none is recorded. Rows are the stages once the present step is taken. Going back waits for
// less than what is recorded, so it has none.
func (d *decision) forecast(rows []v1alpha1.StageStatus) *v1alpha1.Forecast {
	if !d.isUnderWay() {
		return nil
	}
	var whole estimate.Part
	for i := range rows {
		whole.Parts = append(whole.Parts, estimate.Part{
			Name: rows[i].Name, Began: ring.TimeOf(rows[i].StartedAt), Done: rows[i].State == StateComplete,
		})
	}
	return (*v1alpha1.Forecast)(estimate.Ends(d.o.Now, &whole, runsOf(d.o.Module.Status.History)))
}

// runsOf are when the stages rolled in former rollouts.
func runsOf(history []v1alpha1.PastRollout) []estimate.Run {
	var runs []estimate.Run
	for i := range history {
		run := estimate.Run{Began: history[i].StartedAt.Time, Parts: map[string]estimate.Stretch{}}
		for _, s := range history[i].Stages {
			run.Parts[s.Name] = estimate.Stretch{Began: s.StartedAt.Time, Ended: s.FinishedAt.Time}
		}
		runs = append(runs, run)
	}
	return runs
}

// noteWhy notes of the rollout of a revision that is given up why it is.
func noteWhy(history []v1alpha1.PastRollout, given *v1alpha1.GivenUp) {
	for i := range history {
		if history[i].Revision == given.Revision {
			history[i].Message = whyGivenUp(given)
			return
		}
	}
}
