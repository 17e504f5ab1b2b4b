package decision

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/gates/ask"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/zones/lock"
	"github.com/spillway-dev/spillway/internal/zones/replica"
	"github.com/spillway-dev/spillway/rollout"
)

// zone is a StatefulSet with what is known of it besides.
type zone struct {
	*Set
	o      *Observed
	policy rollout.Limit
	// stopped is true if nothing of the group may move.
	stopped bool
	row     v1alpha1.Zone
	// replicas are those of the spec and the Pods beyond them, each up or down.
	replicas []replica.Replica
	// moves are those of the zone, by Pod; that of the empty name opens it.
	moves map[string]*v1alpha1.Move
}

func (o *Observed) zone(set *Set, stopped bool) *zone {
	z := &zone{Set: set, o: o, stopped: stopped, policy: maxUnavailable(&o.Group.Spec, set)}
	z.replicas = set.replicas(lock.Leaving(&o.Group.Status, set.UID, set.Replicas))
	for i := range o.Group.Status.Zones {
		if row := o.Group.Status.Zones[i]; row.Name == set.Name {
			z.row = row
		}
	}
	intents := o.intents(func(string) *zone { return z })
	for i := range o.Group.Status.Moves {
		if m := &o.Group.Status.Moves[i]; m.Zone == set.Name && intents.Keeps(m) {
			if z.moves == nil {
				z.moves = map[string]*v1alpha1.Move{}
			}
			z.moves[m.Pod] = m
		}
	}
	return z
}

func (d *decision) zone(name string) *zone {
	i := slices.IndexFunc(d.zones, func(z *zone) bool { return z.Name == name })
	if i < 0 {
		return nil
	}
	return d.zones[i]
}

// isOurs is true if the lock permits to disrupt a zone.
func (d *decision) isOurs(z *zone) bool {
	l := d.tree.Root.Lock
	return l.Holder == d.tree.Self && (l.Unit == z.Name || l.Unit == "")
}

// tree is what the engine decides upon: the Pods of the zones of the group.
func (o *Observed) tree(zones []*zone) rollout.Observed {
	spec := &o.Group.Spec
	root := rollout.Unit{
		Name:   o.Group.Name,
		Group:  true,
		Policy: rollout.Policy{Order: rollout.OneAtATime, Repairs: rollout.Number(1), Deadline: o.deadline()},
		Pause:  ring.PauseOf(spec.Pause),
		Block:  o.block(zones),
		Lock:   o.lock(),
	}
	for _, z := range zones {
		root.Children = append(root.Children, z.unit())
	}
	return rollout.Observed{Now: o.Now, Self: o.self(), Root: root}
}

// self is the group as a holder of its lock.
func (o *Observed) self() string { return string(v1alpha1.PurposeRollout) + "/" + o.Group.Name }

// lock is the lock as the engine knows it. One that has expired is free.
func (o *Observed) lock() *rollout.Lock {
	l := o.Group.Status.Lock
	if l == nil || o.takesOver() {
		return &rollout.Lock{}
	}
	return &rollout.Lock{Holder: l.Holder, Purpose: string(l.Purpose), Unit: l.Zone, Since: l.Since.Time}
}

// takesOver is true if a lock is held that has expired.
func (o *Observed) takesOver() bool {
	l := o.Group.Status.Lock
	return l != nil && l.Expires != nil && !o.Now.Before(l.Expires.Time)
}

// block is what concerns the group as a whole: input that cannot be understood,
// a view that is too old, a status that does not speak of its spec yet, and the time.
func (o *Observed) block(zones []*zone) *rollout.Block {
	if problems := o.problems(); len(problems) > 0 {
		return &rollout.Block{Reason: ReasonInvalid, Message: sentences(problems)}
	}
	if o.isBehind() {
		return &rollout.Block{Reason: ReasonStaleView, Message: "the cache of Pods or StatefulSets is older than the last decision"}
	}
	for _, z := range zones {
		if z.stale() {
			return &rollout.Block{Reason: ReasonNotObserved, Message: z.notObserved()}
		}
	}
	return o.outside()
}

// zones are the sets in the order in which they go: those that the group lists,
// then those that have a place of their own, then the others by name.
func (o *Observed) zones() []*zone {
	sets := o.byName()
	slices.SortStableFunc(sets, func(a, b *Set) int {
		return cmp.Or(cmp.Compare(o.listed(a), o.listed(b)), cmp.Compare(placed(a), placed(b)), comparePlaces(a, b))
	})
	stopped := o.Group.Spec.Pause != nil || o.isClosed() || len(o.problems()) > 0
	zones := make([]*zone, len(sets))
	for i, set := range sets {
		zones[i] = o.zone(set, stopped)
	}
	return zones
}

// byName are the sets by name.
func (o *Observed) byName() []*Set {
	sets := make([]*Set, len(o.Sets))
	for i := range o.Sets {
		sets[i] = &o.Sets[i]
	}
	slices.SortFunc(sets, func(a, b *Set) int { return strings.Compare(a.Name, b.Name) })
	return sets
}

// listed is the place in spec.zoneOrder, behind all of it for others.
func (o *Observed) listed(set *Set) int {
	if i := slices.Index(o.Group.Spec.ZoneOrder, set.Name); i >= 0 {
		return i
	}
	return len(o.Group.Spec.ZoneOrder)
}

func placed(set *Set) int {
	if set.Settings.Order != nil {
		return 0
	}
	return 1
}

func comparePlaces(a, b *Set) int {
	if a.Settings.Order == nil || b.Settings.Order == nil {
		return 0
	}
	return cmp.Compare(*a.Settings.Order, *b.Settings.Order)
}

func sentences(problems []Problem) string {
	return message.Join(problems, "; ", Problem.String)
}

// unit is the zone as the engine sees it.
func (z *zone) unit() rollout.Unit {
	unit := rollout.Unit{
		Name:  z.Name,
		Group: true,
		Policy: rollout.Policy{
			MaxUnavailable: rollout.Number(z.policy.Of(z.Replicas)), // of these, whatever Pods there are beyond them
			MinReady:       z.minReady(),
			Soak:           z.o.soak(),
		},
		Gates: z.gates(),
		Whole: z.whole(),
	}
	if z.Settings.Paused {
		unit.Pause = &rollout.Pause{}
	}
	if z.Deleting {
		unit.Block = &rollout.Block{Reason: ReasonDeleting, Message: "it is being deleted"}
	}
	unit.Children = make([]rollout.Unit, 0, len(z.replicas))
	for i := range z.replicas {
		unit.Children = append(unit.Children, z.leaf(&z.replicas[i]))
	}
	return unit
}

// whole is how the engine sees a zone that is held: its controller moves all of it
// once it is opened, and until then brings each Pod back at the current revision.
func (z *zone) whole() *rollout.Whole {
	if !z.held() {
		return nil
	}
	return &rollout.Whole{
		Revision: z.CurrentRevision, Reason: ReasonHeld,
		Message: "the partition holds its zone, so it would come back at " + z.CurrentRevision,
	}
}

// gates stand behind a zone that looks done and is not.
func (z *zone) gates() []rollout.Gate {
	var gates []rollout.Gate
	if z.stale() {
		gates = append(gates, rollout.Gate{Name: "status", When: rollout.After, Message: z.notObserved()})
	}
	if z.open() {
		gates = append(gates, rollout.Gate{Name: "partition", When: rollout.After, Message: "the zone is open, and must be held again" + z.o.refusalOf(z.Name)})
	}
	for _, q := range z.questions() {
		gates = append(gates, z.o.Gates.Engine(&q))
	}
	return gates
}

// questions are the gates of a zone: once it was moved to its present revision, until the
// whole of it was at it and they had passed. So a group that is adopted asks about nothing,
// and one that goes back to the last good revision neither.
func (z *zone) questions() []ask.Question {
	started := z.row.Target == z.UpdateRevision && z.row.StartedAt != nil
	if len(z.o.Group.Spec.Gates) == 0 || z.stale() || !started || z.row.Revision == z.UpdateRevision {
		return nil
	}
	questions := make([]ask.Question, len(z.o.Group.Spec.Gates))
	for i, gate := range z.o.Group.Spec.Gates {
		questions[i] = ask.Question{Target: z.o.target(), Stage: z.Name, Revision: z.UpdateRevision, Gate: gate.GateReference, When: ask.WhenOf(gate.When)}
	}
	return questions
}

// target is the group as what rolls out.
func (o *Observed) target() ask.Target {
	return ask.Target{UID: o.Group.UID, TargetReference: v1alpha1.TargetReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "RolloutGroup", Name: o.Group.Name,
	}}
}

func (z *zone) notObserved() string {
	return fmt.Sprintf("the status of %s has not observed generation %d yet", z.Name, z.Generation)
}

// isDone is true if every replica of a zone is where it should be.
func (d *decision) isDone(z *zone) bool {
	counts := d.plan.Group(z.Name).Counts
	return !z.stale() && counts.Ready == counts.Total
}

// isOpened is true if the controller may have replaced Pods of which this view
// does not know, or still may.
func (z *zone) isOpened() bool {
	certain := (z.o.Live || z.Verified) && !z.open() && !z.stale() && z.moves[""] == nil
	return z.row.Opened && !certain
}

// isForced is true if the controller may replace Pods, or have done so, though nothing was permitted: another
// client has opened the zone since all of it was at one revision, and it wants another one.
func (d *decision) isForced(z *zone) bool {
	return z.open() && !d.isOurs(z) && z.row.Revision != "" && (z.stale() || z.UpdateRevision != z.row.Revision)
}

// started is when the zone was first moved to its target, nil if it was not.
func (z *zone) started() *metav1.MicroTime {
	if z.row.Target != z.UpdateRevision {
		return nil
	}
	return z.row.StartedAt
}

// phase is that of the group. It has failed from when one of its Pods has: no other is replaced
// then, whatever is still getting ready.
func (d *decision) phase() rollout.Phase {
	switch {
	case len(d.problems) > 0:
		return PhaseStalled
	case d.plan.Phase == rollout.PhaseProgressing && len(d.plan.Steps) == 0 && hasFailed(d.plan.Holds):
		return rollout.PhaseFailed
	default:
		return d.plan.Phase
	}
}

// hasFailed is true if one of the Pods of a group has failed: it has missed its deadline, and is not
// ready since.
func hasFailed(holds []rollout.Hold) bool {
	return slices.ContainsFunc(holds, func(h rollout.Hold) bool { return isFailure(h.Reason) })
}

func isFailure(r rollout.Reason) bool {
	return r == rollout.ReasonFailed || r == rollout.ReasonDeadline
}
