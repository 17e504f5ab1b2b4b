package describe

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/record"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/estimate"
	"github.com/spillway-dev/spillway/internal/plans"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// The phases that the rings know besides those of the engine.
const (
	// PhaseStalled: something is wrong that a person has to fix.
	PhaseStalled = plans.PhaseStalled
	// PhaseUnseen: no manager has looked at it as it is now.
	PhaseUnseen = plans.PhaseUnseen
	// PhaseRolledBack: it was given up, and is where it was before.
	PhaseRolledBack rollout.Phase = "RolledBack"
)

// Unit is something that a ring rolls out, with its state: a node of the tree.
type Unit struct {
	Ref

	// Ring is the one that moves it.
	Ring  string        `json:"ring"`
	Phase rollout.Phase `json:"phase"`
	// Done of Total of what Counted names are where they should be: "Pods", "clusters",
	// "steps". Total is 0 where nothing is counted.
	Done    int    `json:"done,omitempty"`
	Total   int    `json:"total,omitempty"`
	Counted string `json:"counted,omitempty"`
	// Reason is why it is not complete, empty if it is or if it moves right now.
	Reason rollout.Reason `json:"reason,omitempty"`
	// Sentence is the one that the ring says everywhere, without a full stop. Of what
	// is complete it may be empty.
	Sentence string `json:"sentence,omitempty"`
	// Why are its parts, the same for all that wait for the same; the zero Cause if they are not known.
	Why rollout.Cause `json:"-"`
	// Position is its place in the queue of those that wait for their turn, from 1; 0 if it is in none.
	Position int `json:"position,omitempty"`
	// Paused is true of what is complete and paused: its next change waits until it is resumed.
	Paused bool       `json:"paused,omitempty"`
	Since  *time.Time `json:"since,omitempty"`
	// Until is when what it waits for ends automatically, nil if that is not known.
	Until *time.Time `json:"until,omitempty"`
	// Deadline is when it counts as failed, nil if it never does or that is not known.
	Deadline *time.Time `json:"deadline,omitempty"`
	// Ends is when it is expected to be complete: as its status says since the last step, or as
	// it is simulated, if that was asked for. It is nil if that is not known, or if it does not
	// come to its end.
	Ends *Range `json:"ends,omitempty"`
	// WaitsFor is the unit beside it, or elsewhere, that it waits for, nil if there is
	// none in particular.
	WaitsFor *Ref `json:"waitsFor,omitempty"`
	// Cause is true of what is not rolled itself: those beneath it are rolled for it, or
	// wait for it.
	Cause bool `json:"cause,omitempty"`
	// Units are those that it consists of, in the order in which they go.
	Units []Unit `json:"units,omitempty"`
}

// Range is a moment that is expected, and between which ones it lies.
type Range struct {
	Earliest time.Time `json:"earliest"`
	Expected time.Time `json:"expected"`
	Latest   time.Time `json:"latest"`
}

// IsComplete is true of what is where it should be.
func (u *Unit) IsComplete() bool { return u.Phase == rollout.PhaseComplete }

// AreComplete is true if all units are.
func AreComplete(units []Unit) bool {
	return !slices.ContainsFunc(units, func(u Unit) bool { return !u.IsComplete() })
}

// Amount is how far it is, in words, empty where nothing is counted.
func (u *Unit) Amount() string {
	if u.Total == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d %s", u.Done, u.Total, u.Counted)
}

// pausedBy says of a unit that is complete that it is paused; of another, its reason does.
func (u *Unit) pausedBy(p *rollout.Pause) {
	if p == nil || !u.IsComplete() {
		return
	}
	u.Paused = true
	if u.Sentence != "" {
		u.Sentence += "; "
	}
	u.Sentence += p.Clause()
}

// endsBy sets when a unit ends, as its status says. What is paused or has failed does not end
// while it is.
func (u *Unit) endsBy(f *estimate.Forecast) {
	if f != nil && (u.Phase == rollout.PhaseProgressing || u.Phase == rollout.PhaseWaiting) {
		u.Ends = &Range{Earliest: f.Earliest.Time, Expected: f.Expected.Time, Latest: f.Latest.Time}
	}
}

// EndsIn is when it ends, seen from now, empty if that is not known or was to be before.
func (u *Unit) EndsIn(now time.Time) string {
	if u.Ends == nil || u.Ends.Latest.Before(now) {
		return ""
	}
	return In(now, *u.Ends)
}

// Find is the unit of an object, wherever it is, nil if there is none.
func Find(units []Unit, ref Ref) *Unit {
	for i := range units {
		if units[i].Ref == ref {
			return &units[i]
		}
		if u := Find(units[i].Units, ref); u != nil {
			return u
		}
	}
	return nil
}

// Waiting leaves of the units those that wait or have one beneath them that does.
func Waiting(units []Unit) []Unit { return kept(units, (*Unit).IsWaiting) }

// IsWaiting is true of a unit that is not complete and does not progress.
func (u *Unit) IsWaiting() bool {
	return !slices.Contains([]rollout.Phase{rollout.PhaseComplete, rollout.PhaseProgressing, PhaseRolledBack}, u.Phase)
}

// Rolled are the units that are rolled, without what they are rolled for.
func Rolled(units []Unit) []Unit {
	var rolled []Unit
	for i := range units {
		if units[i].Cause {
			rolled = append(rolled, units[i].Units...)
		} else {
			rolled = append(rolled, units[i])
		}
	}
	return rolled
}

func kept(units []Unit, is func(*Unit) bool) []Unit {
	var left []Unit
	for i := range units {
		u := units[i]
		u.Units = kept(u.Units, is)
		if len(u.Units) > 0 || is(&u) {
			left = append(left, u)
		}
	}
	return left
}

// OfRing are the units of one ring.
func OfRing(units []Unit, ring string) []Unit {
	var of []Unit
	for i := range units {
		if units[i].Ring == ring {
			of = append(of, units[i])
		}
	}
	return of
}

// IsPolicy is true of what says how others are rolled.
func (u *Unit) IsPolicy() bool { return u.Kind == KindPolicy || u.Kind == KindClusterPolicy }

// Counts says how many there are in each phase, in words: "3 Complete, 1 Waiting". Policies
// are counted after them.
func Counts(units []Unit) string {
	var phases []string
	number, policies := map[string]int{}, 0
	for i := range units {
		if units[i].IsPolicy() {
			policies++
			continue
		}
		phase := string(units[i].Phase)
		if number[phase] == 0 {
			phases = append(phases, phase)
		}
		number[phase]++
	}
	slices.Sort(phases)
	for i, phase := range phases {
		phases[i] = fmt.Sprintf("%d %s", number[phase], phase)
	}
	switch {
	case policies == 1:
		phases = append(phases, "1 policy")
	case policies > 1:
		phases = append(phases, fmt.Sprintf("%d policies", policies))
	}
	return strings.Join(phases, ", ")
}

// recorded adds to a unit what its record says: the numbers, and its stages with the units beneath that are not
// complete, whatever the ring; those that are in no stage come last. It is the one function that makes units
// of a record.
func (u *Unit) recorded(r *record.Rollout, stage, unit string) {
	if r == nil {
		return
	}
	u.Done, u.Total = int(r.Units.Complete), int(r.Units.Total)
	for i := range r.Stages {
		u.Units = append(u.Units, u.stage(&r.Stages[i], stage))
	}
	stages := len(u.Units)
	for i := range r.Causes {
		for k, name := range r.Causes[i].Units {
			in, own := ring.UnitOf(name)
			isOf := func(s Unit) bool { return s.Name == in }
			switch at := slices.IndexFunc(u.Units[:stages], isOf); {
			case at >= 0:
				s := &u.Units[at]
				s.Units = append(s.Units, u.waiting(&r.Causes[i], unit, own, k))
			case own != u.Name && !slices.ContainsFunc(u.Units[:stages], func(s Unit) bool { return s.Name == own }):
				u.Units = append(u.Units, u.waiting(&r.Causes[i], unit, own, k))
			}
		}
	}
	for i := range u.Units[:stages] {
		slices.SortStableFunc(u.Units[i].Units, func(a, b Unit) int { return strings.Compare(a.Name, b.Name) })
	}
}

// stage is a stage of a unit.
func (u *Unit) stage(s *record.Stage, kind string) Unit {
	stage := Unit{
		Ref: Ref{Kind: kind, Name: s.Name}, Ring: u.Ring, Phase: rollout.Phase(s.Phase), Reason: rollout.Reason(s.Reason),
		Sentence: s.Message, Since: TimeOf(s.Since), Done: int(s.Complete), Total: int(s.Total), Counted: u.Counted,
	}
	if s.WaitsFor != "" {
		stage.WaitsFor = &Ref{Kind: kind, Name: s.WaitsFor}
	}
	return stage
}

// waiting is a unit beneath that is not complete, at a place among those that wait for the same.
func (u *Unit) waiting(c *record.Cause, kind, name string, at int) Unit {
	is := ring.WaitingIn(c, name, at)
	w := Unit{
		Ref: Ref{Kind: kind, Name: name}, Ring: u.Ring, Phase: ring.PhaseOf(is.Reason), Reason: is.Reason, Why: is.Cause,
		Sentence: is.Sentence(name, is.Position), Position: is.Position,
		Since: TimeOrNil(is.Since), Until: TimeOrNil(is.Until), Deadline: TimeOrNil(is.Deadline),
	}
	if is.State == ring.StateWaiting && w.Phase == rollout.PhaseProgressing { // nothing moves
		w.Phase = rollout.PhaseWaiting
	}
	if on := c.On; on != nil && on.Name != name {
		w.WaitsFor = &Ref{Kind: on.Kind, Name: on.Name}
	}
	return w
}

// RefTo names an object that was read.
func RefTo(kind string, obj client.Object) Ref {
	return Ref{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// TimeOf returns the time of a field of the API, nil if it is not set.
func TimeOf(t *metav1.MicroTime) *time.Time {
	if t == nil {
		return nil
	}
	return &t.Time
}

// TimeOrNil returns nil for the zero time.
func TimeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Ref names an object, or a unit that is none, such as a zone or a step, as the tree
// shows it.
type Ref struct {
	// Kind is as in a manifest: "RolloutGroup". Of what is no object it is the word
	// for it: "Cluster", "Zone", "Phase", "Step".
	Kind string `json:"kind"`
	// APIVersion is that of the kind where its name alone does not say which it is: of
	// what is neither Kubernetes', Flux' nor Spillway's own.
	APIVersion string `json:"apiVersion,omitempty"`
	// Namespace is empty for what has none, and for what belongs to the unit above it.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Cluster is the name of the cluster of a fleet in which it is, empty for the one
	// that was asked.
	Cluster string `json:"cluster,omitempty"`
}

// RefOf refers to a ConfigMap or Secret.
func RefOf(o content.Object) *Ref {
	return &Ref{Kind: string(o.Kind), Namespace: o.Namespace, Name: o.Name}
}

// Content is the ConfigMap or Secret that it refers to, as [RefOf] has it.
func (r Ref) Content() content.Object {
	return content.Object{Kind: content.Kind(r.Kind), Namespace: r.Namespace, Name: r.Name}
}

// String is how kubectl names it: "rolloutgroup/ingester".
func (r Ref) String() string { return strings.ToLower(r.Kind) + "/" + r.Name }
