package decision

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// Explanation says in one sentence how a group stands, and then the facts.
type Explanation struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Phase is that of the status: Complete, Progressing, Waiting, Paused, Failed
	// or Stalled.
	Phase string `json:"phase"`
	// Reason is why it is not complete, empty if it is.
	Reason rollout.Reason `json:"reason,omitempty"`
	// Sentence is the same that the status, Events and logs use.
	Sentence string     `json:"sentence"`
	Since    *time.Time `json:"since,omitempty"`
	Until    *time.Time `json:"until,omitempty"`
	// Zone is which zone moves, of how many; Updated how many Pods are up to date
	// and available, of how many.
	Zone    string `json:"zone"`
	Updated string `json:"updated"`
	// Zones has a row for each zone, in the order in which they go.
	Zones []v1alpha1.Zone `json:"zones,omitempty"`
	// Holds are all that wait, zones and Pods, each with the one reason; and Steps the
	// Pods that are moved next.
	Holds []rollout.Hold `json:"holds,omitempty"`
	Steps []rollout.Step `json:"steps,omitempty"`
	// Telling is the one of them that tells most of the whole, nil if nothing waits or
	// something moves.
	Telling *rollout.Hold `json:"-"`
	// Deadline is when what moves counts as failed, nil if nothing does.
	Deadline *time.Time `json:"deadline,omitempty"`
	// Lock is who may disrupt the group, nil if there is none.
	Lock *v1alpha1.Lock `json:"lock,omitempty"`
	// Pause and Retry are what users asked for.
	Pause *v1alpha1.Pause `json:"pause,omitempty"`
	Retry *v1alpha1.Retry `json:"retry,omitempty"`
	// Problems are mistakes, each with its fix; Notes are what is worth knowing
	// though nothing is wrong.
	Problems []string `json:"problems,omitempty"`
	// Faults are the problems for a program.
	Faults []Problem `json:"-"`
	Notes  []string  `json:"notes,omitempty"`
	// History are the last rollouts, the newest first.
	History []v1alpha1.Rollout `json:"history,omitempty"`
	// Forecast is when the rollout ends, as the last step said.
	Forecast *v1alpha1.Forecast `json:"forecast,omitempty"`
	// Automatic is true of a group that no user wrote and no user has changed; and
	// Missing of one that the manager has not made yet.
	Automatic bool `json:"automatic,omitempty"`
	Missing   bool `json:"missing,omitempty"`
	// Wake is when time alone changes some of this, zero for never.
	Wake time.Time `json:"-"`
}

// Explain puts the facts of one group together.
func Explain(o Observed) Explanation {
	d := decide(&o, rollout.Decide)
	status := d.status()
	e := Explanation{
		Namespace: o.Group.Namespace, Name: o.Group.Name, Phase: status.Phase,
		Zone: status.Zone, Updated: status.Updated, Zones: status.Zones, Holds: d.plan.Holds, Steps: d.plan.Steps,
		Lock: o.Group.Status.Lock, Pause: o.Group.Spec.Pause, Retry: o.Group.Spec.Retry,
		History: status.History, Forecast: status.Forecast, Notes: o.notes(), Wake: d.lasts(),
	}
	reason, message := d.verdict()
	e.Sentence = message
	if e.Phase != string(rollout.PhaseComplete) {
		e.Reason, e.Since = reason, moment(status.Since)
	}
	if hold := d.plan.At().Hold; hold != nil {
		e.follow(hold, o.deadline())
	}
	e.Faults = d.problems
	for _, p := range d.problems {
		e.Problems = append(e.Problems, p.String())
	}
	if problem := Nameless(o.Group.Name); problem != "" {
		e.Problems = append(e.Problems, problem)
		e.Sentence = problem
	}
	return e
}

// lasts is when time alone changes what is said, zero for never: also where nothing that may be done
// depends on it.
func (d *decision) lasts() time.Time {
	moments := []time.Time{d.o.closes()}
	for _, z := range d.zones {
		for i := range z.Pods {
			p := &z.Pods[i]
			moments = append(moments, p.Since.Add(z.minReady()), z.stuckAt(p))
		}
	}
	return ring.Earlier(d.wake(), ring.Soonest(d.o.Now, moments...))
}

// follow takes over what tells most.
func (e *Explanation) follow(hold *rollout.Hold, patience time.Duration) {
	e.Telling = hold
	if !hold.Until.IsZero() {
		e.Until = &hold.Until
	}
	if hold.Reason == rollout.ReasonProgressing && !hold.Since.IsZero() {
		due := hold.Since.Add(patience)
		e.Deadline = &due
	}
}

func moment(t *metav1.Time) *time.Time {
	if t == nil {
		return nil
	}
	return &t.Time
}

// notes say what a way of holding zones risks.
func (o *Observed) notes() []string {
	for i := range o.Sets {
		if set := &o.Sets[i]; set.Strategy == OnDelete && !set.lent() {
			return []string{"the group is of type OnDelete: a Pod that is evicted before its zone's turn comes back at the new revision; " +
				"with type RollingUpdate it would come back at the old one"}
		}
	}
	return nil
}
