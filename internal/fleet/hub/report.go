package hub

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/rollout"
)

// The types of the conditions.
const (
	ConditionReady       = "Ready"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
)

// The phases that are not the engine's.
const (
	// PhaseStalled: the module cannot be understood.
	PhaseStalled rollout.Phase = "Stalled"
	// PhaseRolledBack: what is wanted has failed, and all clusters are back.
	PhaseRolledBack rollout.Phase = "RolledBack"
	// PhaseUnseen: no manager has looked at the module as it is now.
	PhaseUnseen rollout.Phase = "Unseen"
	// PhaseDeleting: the module is on its way out.
	PhaseDeleting rollout.Phase = "Deleting"
)

// The states of a stage that are no reasons to wait.
const (
	StateComplete = "Complete"
	StateMoving   = "Moving"
)

const (
	// failingShown is how many failing clusters are named.
	failingShown = 20
	// historyMost is how many rollouts are remembered at most.
	historyMost = 20
	// observedMost is how large the sync may be that the status repeats, in bytes.
	observedMost = 8 << 10
	// sentenceLength bounds a sentence in the status.
	sentenceLength = 500
)

// observedSync is a sync, or only its source if there is so much else that the status
// would grow with it.
func observedSync(sync v1alpha1.Sync) *v1alpha1.Sync {
	if raw, err := json.Marshal(sync); err != nil || len(raw) > observedMost {
		return &v1alpha1.Sync{Source: sync.Source}
	}
	return &sync
}

// status is what the status of the module has to be after this decision.
func (d *decision) status() v1alpha1.ModuleStatus {
	s := *d.o.Module.Status.DeepCopy()
	s.ObservedGeneration = d.o.Module.Generation
	s.ObservedSync = observedSync(d.o.Module.template().Sync)
	s.Moves = d.moves()
	if len(s.Moves) < len(d.o.Module.Status.Moves) { // all who decide from now on have to know what became of them
		s.Seen = d.seen()
	}
	s.TargetRevision = d.target
	if s.RolledBack != d.wanted {
		s.RolledBack = ""
	}
	if d.isComplete() && d.isNews() {
		s.CurrentRevision = d.target
	}
	s.Summary, s.Stages = d.summary(), d.rows()
	s.FailingClusters, s.FailingTruncated = d.failing()
	s.Phase, s.Stage = string(d.phase()), d.place(s.Stages)
	s.Clusters = share(d.ready(), len(d.members))
	s.History = d.history(d.outcome())
	d.tell(&s)
	return s
}

// tell puts the phase into words.
func (d *decision) tell(s *v1alpha1.ModuleStatus) {
	reason, message, since := d.verdict()
	s.WaitingFor, s.Since = "", nil
	if d.phase() != rollout.PhaseComplete {
		s.WaitingFor, s.Since = message, stamp(since)
	}
	for _, c := range d.conditions(reason, message) {
		c.ObservedGeneration, c.LastTransitionTime = d.o.Module.Generation, metav1.NewTime(d.o.Now.Truncate(time.Second))
		meta.SetStatusCondition(&s.Conditions, c)
	}
}

// deletingStatus is that of a module on its way out.
func (d *decision) deletingStatus() v1alpha1.ModuleStatus {
	s := *d.o.Module.Status.DeepCopy()
	s.ObservedGeneration, s.Moves = d.o.Module.Generation, d.moves()
	if len(s.Moves) < len(d.o.Module.Status.Moves) {
		s.Seen = d.seen()
	}
	left := 0
	for i := range d.o.Records {
		left += one(d.o.Records[i].Assigned && !d.o.Foreign[d.o.Records[i].Cluster])
	}
	s.Phase = string(PhaseDeleting)
	s.WaitingFor = fmt.Sprintf("it is taken away from %d clusters", left)
	for _, c := range conditionsOf(false, true, false, reasons.Deleting, s.WaitingFor) {
		c.ObservedGeneration, c.LastTransitionTime = s.ObservedGeneration, metav1.NewTime(d.o.Now.Truncate(time.Second))
		meta.SetStatusCondition(&s.Conditions, c)
	}
	return s
}

func stamp(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	whole := metav1.NewTime(t.Truncate(time.Second))
	return &whole
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func share(part, whole int) string { return strconv.Itoa(part) + "/" + strconv.Itoa(whole) }

// small is a number of clusters; there are never as many as an int32 can count.
func small(n int) int32 { return int32(n) } //nolint:gosec // bounded by what an API server can hold

// phase sums up the module.
func (d *decision) phase() rollout.Phase {
	done := len(d.plan.Holds) == 0 && len(d.plan.Steps) == 0
	switch {
	case len(d.problems) > 0:
		return PhaseStalled
	case d.target != d.wanted && done:
		return PhaseRolledBack
	case d.target != d.wanted && d.plan.Phase != rollout.PhaseFailed && d.plan.Phase != rollout.PhasePaused:
		return rollout.PhaseRollingBack
	default:
		return d.plan.Phase
	}
}

// outcome is the phase as the history takes it: a revision that got everywhere but
// for failures that are borne is complete.
func (d *decision) outcome() rollout.Phase {
	if d.isComplete() {
		return rollout.PhaseComplete
	}
	return d.plan.Phase
}

// verdict is the state of the module as a word and a sentence.
func (d *decision) verdict() (reason rollout.Reason, message string, since time.Time) {
	if len(d.problems) > 0 {
		return ReasonInvalid, short(d.problems[0], sentenceLength), time.Time{}
	}
	answer := d.plan.At()
	switch {
	case d.phase() == PhaseRolledBack:
		return ReasonRolledBack, fmt.Sprintf("%s failed and was given up, all clusters are at %s; change the template to try again",
			d.wanted, d.target), time.Time{}
	case answer.Hold != nil:
		return answer.Hold.Reason, short(answer.Hold.Message, sentenceLength), answer.Hold.Since
	case answer.Step != nil:
		return rollout.ReasonProgressing, answer.Message(), time.Time{}
	default:
		return reasons.Complete, d.completed(), time.Time{}
	}
}

func (d *decision) completed() string {
	text := fmt.Sprintf("all of %d clusters are at %s", len(d.members)-len(d.aside), d.target)
	if n := len(d.aside); n > 0 {
		text += fmt.Sprintf(", %d are pinned or belong to no stage", n)
	}
	return text
}

// conditions are Ready, Reconciling and Stalled, without their times.
func (d *decision) conditions(reason rollout.Reason, message string) []metav1.Condition {
	switch d.phase() {
	case rollout.PhaseComplete:
		return conditionsOf(true, false, false, reason, message)
	case PhaseStalled, PhaseRolledBack, rollout.PhaseFailed:
		return conditionsOf(false, false, true, reason, message)
	case rollout.PhasePaused:
		return conditionsOf(false, false, false, reason, message)
	default:
		return conditionsOf(false, true, false, reason, message)
	}
}

func conditionsOf(ready, reconciling, stalled bool, reason rollout.Reason, message string) []metav1.Condition {
	return []metav1.Condition{
		{Type: ConditionReady, Status: kube.Truth(ready), Reason: string(reason), Message: message},
		{Type: ConditionReconciling, Status: kube.Truth(reconciling), Reason: string(reason), Message: message},
		{Type: ConditionStalled, Status: kube.Truth(stalled), Reason: string(reason), Message: message},
	}
}

// summary counts the clusters.
func (d *decision) summary() *v1alpha1.Summary {
	s := v1alpha1.Summary{Total: small(len(d.members))}
	for _, m := range d.members {
		s.Updated += small(one(m.leaf.Current == d.target))
		s.Waiting += small(one(m.leaf.Current != d.target))
		s.Held += small(one(m.isHeld()))
		s.Unreachable += small(one(m.isUnreachable()))
		switch {
		case m.leaf.Current == "":
		case m.hasFailed():
			s.Failed++
		case m.leaf.Health == rollout.Healthy:
			s.Succeeded++
		default:
			s.Updating++
		}
	}
	return &s
}

func (m *member) isUnreachable() bool {
	return m.Unreachable || m.isAssigned() && m.record.Reported && m.record.State == v1alpha1.StateUnreachable
}

// ready is how many clusters are where they should be.
func (d *decision) ready() int {
	n := 0
	for _, m := range d.members {
		n += one(d.isReady(m))
	}
	return n
}

func (d *decision) isReady(m *member) bool {
	return m.leaf.Current == d.target && m.leaf.Health == rollout.Healthy && m.hold == nil
}

// rows has one for each stage.
func (d *decision) rows() []v1alpha1.StageStatus {
	rows := make([]v1alpha1.StageStatus, len(d.stages))
	for i := range d.stages {
		rows[i] = d.row(i)
	}
	return rows
}

func (d *decision) row(i int) v1alpha1.StageStatus {
	s := &d.stages[i]
	row := v1alpha1.StageStatus{Name: s.name, State: StateComplete, Total: small(len(s.members))}
	row.StartedAt, row.FinishedAt = d.former(s.name)
	for _, m := range s.members {
		at := m.leaf.Current == d.target
		row.Updated += small(one(at))
		row.Ready += small(one(d.isReady(m)))
		row.Failed += small(one(at && m.hasFailed()))
	}
	answer := d.stagePlans[i].At()
	row.Message = short(answer.Message(), saidLength+saidLength)
	switch {
	case answer.Step != nil:
		row.State = StateMoving
	case answer.Hold != nil:
		row.State = string(answer.Hold.Reason)
	case row.StartedAt != nil && row.FinishedAt == nil:
		row.FinishedAt = new(metav1.NewMicroTime(d.o.Now))
	}
	return row
}

// former is when a stage was first moved to the target, and when it was complete there;
// nil as long as it was not.
func (d *decision) former(name string) (started, finished *metav1.MicroTime) {
	if d.o.Module.Status.TargetRevision != d.target {
		return nil, nil
	}
	for i := range d.o.Module.Status.Stages {
		if s := &d.o.Module.Status.Stages[i]; s.Name == name {
			return s.StartedAt, s.FinishedAt
		}
	}
	return nil, nil
}

// start notes in the rows when stages begin to move.
func (d *decision) start(rows []v1alpha1.StageStatus, moves []v1alpha1.Move) {
	now := metav1.NewMicroTime(d.o.Now)
	for _, m := range moves {
		c := d.member(m.Cluster)
		if c == nil || c.stage < 0 || c.isNew {
			continue
		}
		if row := &rows[c.stage]; row.StartedAt == nil {
			row.StartedAt = &now
		}
	}
}

// place is the first stage that is not done, of how many.
func (d *decision) place(rows []v1alpha1.StageStatus) string {
	for i := range rows {
		if rows[i].State != StateComplete {
			return rows[i].Name + " " + share(i+1, len(rows))
		}
	}
	return ""
}

// failing are examples of clusters that have failed, and whether there are more.
func (d *decision) failing() (examples []v1alpha1.FailingCluster, more bool) {
	for _, m := range d.members {
		if m.leaf.Current == "" || !m.hasFailed() {
			continue
		}
		if len(examples) == failingShown {
			return examples, true
		}
		examples = append(examples, m.failure())
	}
	return examples, false
}

func (m *member) failure() v1alpha1.FailingCluster {
	f := v1alpha1.FailingCluster{Name: m.Name, Revision: m.leaf.Current, Reason: string(rollout.ReasonFailed)}
	if m.record != nil && m.record.Reason != "" {
		f.Reason = string(m.record.Reason)
	}
	switch {
	case m.record != nil && m.record.Message != "":
		f.Message = short(m.record.Message, saidLength)
	case m.hold != nil:
		f.Message = short(m.hold.Message, saidLength)
	}
	return f
}

// history is how the last rollouts went.
func (d *decision) history(phase rollout.Phase) []v1alpha1.PastRollout {
	old := d.o.Module.Status.History
	if len(d.problems) > 0 || len(d.members) == 0 {
		return old
	}
	entries := make([]rollout.Entry, len(old))
	for i, h := range old {
		entries[i] = rollout.Entry{Revision: h.Revision, StartedAt: h.StartedAt.Time, Outcome: rollout.Outcome(h.Outcome)}
		if h.FinishedAt != nil {
			entries[i].EndedAt = h.FinishedAt.Time
		}
	}
	entries = rollout.Advance(entries, d.target, phase, d.o.Now, historyMost)
	history := make([]v1alpha1.PastRollout, len(entries))
	for i, e := range entries {
		history[i] = v1alpha1.PastRollout{Revision: e.Revision, StartedAt: metav1.NewMicroTime(e.StartedAt), Outcome: string(e.Outcome)}
		if !e.EndedAt.IsZero() {
			at := metav1.NewMicroTime(e.EndedAt)
			history[i].FinishedAt = &at
		}
	}
	return history
}
