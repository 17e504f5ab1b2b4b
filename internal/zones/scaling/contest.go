package scaling

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// Scaled is what is noted in a StatefulSet, in the write of its replicas, so that every reader
// sees whether another client has set them back since.
type Scaled struct {
	// Replicas are those that were written, and At is when.
	Replicas int       `json:"replicas"`
	At       time.Time `json:"at"`
	// Undone is how often in a row the same replicas were set back before, and Since when they
	// were written first.
	Undone int       `json:"undone,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

// raises is how often in a row replicas are added that another client removes. Replicas
// that it adds are not removed again at all: each time Pods would go.
const raises = 3

// contested is for how long a set is left as it is after that.
func contested() ring.Backoff { return ring.Backoff{First: 10 * time.Minute, Most: 6 * time.Hour} }

// scaledOf reads what is noted, nil if nothing is, or another client has written it.
func scaledOf(value string) *Scaled {
	s := &Scaled{}
	if value == "" || json.Unmarshal([]byte(value), s) != nil || s.At.IsZero() || s.Replicas < 0 || s.Undone < 0 {
		return nil
	}
	return s
}

// first is when the replicas were written first.
func (s *Scaled) first() time.Time { return cmp.Or(s.Since, s.At) }

// next is what is noted when replicas are written.
func (s *Set) next(to int, now time.Time) Scaled {
	next := Scaled{Replicas: to, At: now.UTC().Truncate(time.Second)}
	if s.undone(to) {
		next.Undone, next.Since = s.Scaled.Undone+1, s.Scaled.first()
	}
	return next
}

// undone is true of replicas that were written before and set back by another client.
func (s *Set) undone(to int) bool {
	return s.Scaled != nil && s.Scaled.Replicas == to && s.Replicas != to
}

// noted is when the wished replicas were written before, if another client has set them back since;
// nil if none has. A client that replaces the whole StatefulSet takes the note away: then it is what the
// group says of the last downscale.
func (o *Observed) noted(w *wish) *Scaled {
	s := w.set
	if s.undone(w.to) {
		return s.Scaled
	}
	i := slices.IndexFunc(o.Status.Downscales, func(d v1alpha1.Downscale) bool {
		return d.Zone == s.Name && d.UID == s.UID && int(d.To) == w.to && w.lowers()
	})
	if s.Scaled != nil || i < 0 {
		return nil
	}
	return &Scaled{Replicas: w.to, At: o.Status.Downscales[i].At.Time}
}

// ConditionContested is a condition of a RolloutGroup while another client sets replicas back.
const ConditionContested = "ReplicasContested"

// contests is what the condition says, empty if there is none.
func (p *Plan) contests() string {
	contested := slices.DeleteFunc(slices.Clone(p.Holds), func(h rollout.Hold) bool { return h.Reason != ReasonContested })
	return message.Sentence(message.Join(contested, "; ", func(h rollout.Hold) string { return h.Message }))
}

// isNoted is true if the conditions of a group say so already.
func isNoted(conditions []metav1.Condition, contests string) bool {
	c := apimeta.FindStatusCondition(conditions, ConditionContested)
	return c == nil && contests == "" || c != nil && c.Message == contests
}

// setContests changes the conditions of a group.
func setContests(group *v1alpha1.RolloutGroup, contests string, now time.Time) {
	if contests == "" {
		apimeta.RemoveStatusCondition(&group.Status.Conditions, ConditionContested)
		return
	}
	apimeta.SetStatusCondition(&group.Status.Conditions, metav1.Condition{
		Type: ConditionContested, Status: metav1.ConditionTrue, Reason: string(ReasonContested), Message: contests,
		ObservedGeneration: group.Generation, LastTransitionTime: metav1.NewTime(now),
	})
}

// contest keeps a set as it is whose replicas another client sets back.
func (o *Observed) contest(w *wish) {
	s, noted := w.set, o.noted(w)
	if w.block != nil || noted == nil {
		return
	}
	times, said := noted.Undone+1, "once"
	if times > 1 {
		said = fmt.Sprintf("%d times", times)
	}
	if !w.lowers() && times < raises {
		return
	}
	until := noted.At.Add(contested().After(noted.Undone))
	if !o.Now.Before(until) {
		return
	}
	w.calls = nil
	w.block = &rollout.Block{Reason: ReasonContested, Since: noted.At, Until: until, Message: fmt.Sprintf(
		"another client sets its replicas back from %d to %d (%s since %s); remove spec.replicas from what that client applies; tried again at %s",
		w.to, s.Replicas, said, rollout.Clock(noted.first()), rollout.Clock(until))}
}
