package decision

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// The phases that are not the engine's.
const (
	// PhaseStalled: the module cannot be understood.
	PhaseStalled rollout.Phase = "Stalled"
	// PhaseRolledBack: what is wanted has failed, and all clusters are back.
	PhaseRolledBack rollout.Phase = "RolledBack"
	// PhaseUnseen: no manager has looked at the module as it is now.
	PhaseUnseen = ring.PhaseUnseen
	// PhaseDeleting: the module is being deleted.
	PhaseDeleting rollout.Phase = "Deleting"
)

// The states of a stage that are no reasons to wait.
const (
	StateComplete = "Complete"
	StateUpdating = "Updating"
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

// status returns what the status of the module must be after this decision.
func (d *decision) status() v1alpha1.ModuleStatus {
	s := *d.o.Module.Status.DeepCopy()
	s.ObservedGeneration = d.o.Module.Generation
	s.ObservedSync = observedSync(d.o.Module.Template().Sync)
	s.Moves = d.intents.Kept()
	if len(s.Moves) < len(d.o.Module.Status.Moves) { // all who decide from now on have to know what became of them
		s.Seen = d.seen()
	}
	if s.TargetRevision != d.target || !d.isUnderWay() {
		s.Forecast = nil
	}
	s.TargetRevision, s.Removal, s.RecentRemovals = d.target, d.removalStatus(), d.keptLately()
	if s.RolledBack != d.wanted {
		s.RolledBack, s.GivenUp = "", nil
	}
	if d.isComplete() && d.isNews() {
		s.CurrentRevision = d.target
	}
	if s.Retried != nil && (s.Retried.Revision != d.wanted || s.CurrentRevision == d.wanted) {
		s.Retried = nil
	}
	s.Summary, s.Stages = d.summary(), d.rows()
	s.FailingClusters, s.FailingTruncated = d.failing()
	s.Phase, s.Stage = string(d.phase()), d.place(s.Stages)
	s.Clusters = share(d.ready(), len(d.members))
	s.History = d.history(d.outcome(), s.Stages)
	d.describe(&s)
	s.Rollout = d.rollout(&s)
	return s
}

// observedSync is a sync, or only its source if there is so much else that the status
// would grow with it.
func observedSync(sync v1alpha1.Sync) *v1alpha1.Sync {
	if raw, err := json.Marshal(sync); err != nil || len(raw) > observedMost {
		return &v1alpha1.Sync{Source: sync.Source}
	}
	return &sync
}

// describe puts the phase into words.
func (d *decision) describe(s *v1alpha1.ModuleStatus) {
	reason, message, since := d.verdict()
	s.WaitingFor, s.Since = "", nil
	if d.phase() != rollout.PhaseComplete {
		s.WaitingFor, s.Since = message, stamp(since)
	}
	phase := d.phase()
	stalled := phase == PhaseStalled || phase == PhaseRolledBack
	ring.ConditionsOf(phase, stalled, reason, message).Set(&s.Conditions, d.o.Module.Generation, d.o.Now.Truncate(time.Second))
}

// deletingStatus returns the status of a module that is being deleted.
func (d *decision) deletingStatus() v1alpha1.ModuleStatus {
	s := *d.o.Module.Status.DeepCopy()
	s.ObservedGeneration, s.Moves = d.o.Module.Generation, d.intents.Kept()
	if len(s.Moves) < len(d.o.Module.Status.Moves) {
		s.Seen = d.seen()
	}
	left := 0
	for i := range d.o.Records {
		left += one(d.o.Records[i].Assigned && !d.o.Foreign[d.o.Records[i].Cluster])
	}
	s.Phase, s.Removal, s.Forecast, s.Rollout = string(PhaseDeleting), nil, nil, nil
	s.WaitingFor = fmt.Sprintf("it is being removed from %d clusters", left)
	deleting := ring.Conditions{Reconciling: true, Reason: reasons.Deleting, Message: s.WaitingFor}
	deleting.Set(&s.Conditions, s.ObservedGeneration, d.o.Now.Truncate(time.Second))
	return s
}

func stamp(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	whole := metav1.NewTime(t.Truncate(time.Second))
	return &whole
}

// outcome is the phase as the history takes it: a revision that got everywhere but
// for failures that maxFailures tolerates is complete.
func (d *decision) outcome() rollout.Phase {
	if d.isComplete() {
		return rollout.PhaseComplete
	}
	return d.plan.Phase
}

// verdict is the state of the module as a word and a sentence.
func (d *decision) verdict() (reason rollout.Reason, message string, since time.Time) {
	if len(d.problems) > 0 {
		return ReasonInvalid, model.Short(d.problems[0], sentenceLength), time.Time{}
	}
	answer := d.plan.At()
	switch {
	case d.isEmpty():
		return ReasonNoClusters, d.whyEmpty(), time.Time{}
	case d.isStopped():
		return ReasonRolledBack, model.Short(d.whyStopped(), sentenceLength), d.o.Module.Status.GivenUp.At.Time
	case d.phase() == PhaseRolledBack:
		return ReasonRolledBack, model.Short(fmt.Sprintf("%s failed and was rolled back: all clusters are at %s; change the template, or %s%s",
			d.wanted, d.target, d.howToRetry(), reasonOf(d.o.Module.Status.GivenUp)), sentenceLength), time.Time{}
	case answer.Hold != nil:
		return answer.Hold.Reason, model.Short(answer.Hold.Message, sentenceLength), answer.Hold.Since
	case answer.Step != nil:
		return rollout.ReasonProgressing, answer.Message(), time.Time{}
	default:
		return reasons.Complete, d.completed(), time.Time{}
	}
}

// phase sums up the module.
func (d *decision) phase() rollout.Phase {
	done := len(d.plan.Holds) == 0 && len(d.plan.Steps) == 0
	switch {
	case len(d.problems) > 0:
		return PhaseStalled
	case d.isEmpty():
		return rollout.PhaseWaiting
	case d.target != d.wanted && done, d.isStopped():
		return PhaseRolledBack
	case d.target != d.wanted && d.plan.Phase != rollout.PhaseFailed && d.plan.Phase != rollout.PhasePaused:
		return rollout.PhaseRollingBack
	default:
		return d.plan.Phase
	}
}

// isEmpty is true of a module that is for no cluster, though it is to be for some. Of one
// with something left to remove, that is said.
func (d *decision) isEmpty() bool {
	return len(d.members)+len(d.plan.Holds)+len(d.plan.Steps) == 0 && !d.o.Module.Spec.AllowEmpty
}

// whyEmpty says why a module is for no cluster.
func (d *decision) whyEmpty() string {
	if d.o.Module.Spec.Selector == nil {
		return "no cluster is selected: spec.selector is not set, and {} would be all of them"
	}
	matching, example := 0, ""
	for i := range d.o.Clusters {
		if c := &d.o.Clusters[i]; !c.Deleting && d.isSelected(c) {
			matching, example = matching+1, max(example, c.Name)
		}
	}
	if matching == 0 {
		return fmt.Sprintf("spec.selector matches none of the %d clusters in the namespace", len(d.o.Clusters))
	}
	return fmt.Sprintf("none of the %d clusters that spec.selector matches is ready: the control plane of %s must be initialized, and Secret %s must exist",
		matching, example, cluster.SecretName(example))
}

func (d *decision) completed() string {
	text := fmt.Sprintf("all of %d clusters are at %s", len(d.members)-len(d.aside), d.target)
	if n := len(d.aside); n > 0 {
		text += fmt.Sprintf(", %d are pinned or belong to no stage", n)
	}
	return text
}
