package zones

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/rollout"
)

// The ring's own reasons for a Hold.
const (
	// ReasonInvalid: something cannot be understood.
	ReasonInvalid rollout.Reason = "InvalidInput"
	// ReasonNotObserved: a StatefulSet's status does not speak of its spec yet.
	ReasonNotObserved rollout.Reason = "StatusNotObserved"
	// ReasonStaleView: this view is older than what was decided upon last.
	ReasonStaleView rollout.Reason = "StaleView"
	// ReasonDeleting: the StatefulSet is being deleted.
	ReasonDeleting rollout.Reason = "Deleting"
	// ReasonStuck: a Pod is not ready, and the group keeps such Pods.
	ReasonStuck rollout.Reason = "StuckPodKept"
	// ReasonRipening: a Pod has not been ready for long enough.
	ReasonRipening rollout.Reason = "MinReadySeconds"
	// ReasonHeld: a Pod would come back at the revision that it has.
	ReasonHeld rollout.Reason = "HeldByPartition"
)

// zone is a StatefulSet with what is known of it besides.
type zone struct {
	*Set
	o      *Observed
	policy rollout.Limit
	row    v1alpha1.Zone
	// moves are those of the zone, by Pod; that of the empty name opens it.
	moves map[string]*v1alpha1.Move
	// barred is true once it is known that the zone cannot be opened now.
	barred bool
	// lends is true if it is to be lent, though it is not its turn, because Pods that
	// are down in several zones would otherwise wait for each other.
	lends bool
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

// zones are the sets in the order in which they go: those that the group lists,
// then those that have a place of their own, then the others by name.
func (o *Observed) zones() []*zone {
	sets := o.byName()
	slices.SortStableFunc(sets, func(a, b *Set) int {
		return cmp.Or(cmp.Compare(o.listed(a), o.listed(b)), cmp.Compare(placed(a), placed(b)), comparePlaces(a, b))
	})
	zones := make([]*zone, len(sets))
	for i, set := range sets {
		zones[i] = o.zone(set)
	}
	return zones
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

func (o *Observed) zone(set *Set) *zone {
	z := &zone{Set: set, o: o, policy: maxUnavailable(&o.Group.Spec, set)}
	for i := range o.Group.Status.Zones {
		if row := o.Group.Status.Zones[i]; row.Name == set.Name {
			z.row = row
		}
	}
	for i := range o.Group.Status.Moves {
		if m := &o.Group.Status.Moves[i]; m.Zone == set.Name && z.keeps(m) {
			if z.moves == nil {
				z.moves = map[string]*v1alpha1.Move{}
			}
			z.moves[m.Pod] = m
		}
	}
	return z
}

// self is the group as a holder of its lock.
func (o *Observed) self() string { return string(v1alpha1.PurposeRollout) + "/" + o.Group.Name }

// tree is what the engine decides upon: the Pods of the zones of the group.
func (o *Observed) tree(zones []*zone) rollout.Observed {
	spec := &o.Group.Spec
	root := rollout.Unit{
		Name:   o.Group.Name,
		Group:  true,
		Policy: rollout.Policy{Order: rollout.OneAtATime, Deadline: deadline(spec)},
		Pause:  pause(spec.Pause),
		Block:  o.block(zones),
		Lock:   o.lock(),
	}
	for _, z := range zones {
		root.Children = append(root.Children, z.unit())
	}
	return rollout.Observed{Now: o.Now, Self: o.self(), Root: root}
}

func pause(p *v1alpha1.Pause) *rollout.Pause {
	if p == nil {
		return nil
	}
	pause := &rollout.Pause{By: p.By, Reason: p.Reason}
	if p.Since != nil {
		pause.Since = p.Since.Time
	}
	return pause
}

// lock is the lock as the engine knows it. One that has expired is free.
func (o *Observed) lock() *rollout.Lock {
	l := o.Group.Status.Lock
	if l == nil || o.takesOver() {
		return &rollout.Lock{}
	}
	return &rollout.Lock{Holder: l.Holder, Purpose: string(l.Purpose), Unit: l.Zone, Since: l.Since.Time}
}

// takesOver is true if somebody holds a lock that has expired.
func (o *Observed) takesOver() bool {
	l := o.Group.Status.Lock
	return l != nil && l.Expires != nil && !o.Now.Before(l.Expires.Time)
}

// block is what concerns the group as a whole: input that cannot be understood,
// a view that is too old, a status that does not speak of its spec yet.
func (o *Observed) block(zones []*zone) *rollout.Block {
	if problems := o.problems(); len(problems) > 0 {
		return &rollout.Block{Reason: ReasonInvalid, Message: sentences(problems)}
	}
	if o.isBehind() {
		return &rollout.Block{Reason: ReasonStaleView, Message: "its Pods or StatefulSets were seen newer than they are seen now"}
	}
	for _, z := range zones {
		if z.stale() {
			return &rollout.Block{Reason: ReasonNotObserved, Message: z.notObserved()}
		}
	}
	return nil
}

func sentences(problems []Problem) string {
	parts := make([]string, len(problems))
	for i, p := range problems {
		parts[i] = p.String()
	}
	return strings.Join(parts, "; ")
}

func (z *zone) notObserved() string {
	return fmt.Sprintf("the status of %s has not observed generation %d yet", z.Name, z.Generation)
}

// unit is the zone as the engine sees it.
func (z *zone) unit() rollout.Unit {
	spec := &z.o.Group.Spec
	unit := rollout.Unit{
		Name:  z.Name,
		Group: true,
		Policy: rollout.Policy{
			MaxUnavailable: z.policy,
			MinReady:       z.minReady(),
			Soak:           soak(spec),
		},
		Gates: z.gates(),
	}
	if z.Settings.Paused {
		unit.Pause = &rollout.Pause{}
	}
	if z.Deleting {
		unit.Block = &rollout.Block{Reason: ReasonDeleting, Message: "it is being deleted"}
	}
	unit.Children = make([]rollout.Unit, 0, z.Replicas)
	for _, ordinal := range z.ordinals() {
		unit.Children = append(unit.Children, z.leaf(ordinal))
	}
	return unit
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

// gates stand behind a zone that looks done and is not.
func (z *zone) gates() []rollout.Gate {
	var gates []rollout.Gate
	if z.stale() {
		gates = append(gates, rollout.Gate{Name: "status", When: rollout.After, Message: z.notObserved()})
	}
	if z.open() {
		gates = append(gates, rollout.Gate{Name: "partition", When: rollout.After, Message: "it is open, and is to be held again"})
	}
	return gates
}

// ordinals are those of the replicas, best first: upwards, or downwards as the
// controller goes where the partition holds.
func (z *zone) ordinals() []int {
	ordinals := make([]int, z.Replicas)
	for i := range ordinals {
		ordinals[i] = z.FirstOrdinal + i
		if z.rolling() {
			ordinals[i] = z.FirstOrdinal + z.Replicas - 1 - i
		}
	}
	return ordinals
}

// leaf is the replica of an ordinal.
func (z *zone) leaf(ordinal int) rollout.Unit {
	pod := z.pod(ordinal)
	unit := rollout.Unit{Name: z.podName(ordinal)}
	move := z.moves[unit.Name]
	leaf := &unit.Leaf
	leaf.Target = z.UpdateRevision
	leaf.Reason = z.reason(pod, move)
	leaf.Settled = z.row.Revision == leaf.Target
	switch {
	case z.onItsWay(pod, move):
		leaf.Current, leaf.Health = z.returnsAt(), rollout.Progressing
		unit.Block = z.barMissing(leaf)
	case pod.Ready && z.ripens(pod):
		leaf.Current, leaf.Health = pod.Revision, rollout.Degraded
		leaf.Reason, unit.Block = "not ready for long enough yet", z.ripening(pod)
	case pod.Ready:
		leaf.Current, leaf.Health, leaf.HealthySince = pod.Revision, rollout.Healthy, pod.Since
	default:
		leaf.Current, leaf.Health = pod.Revision, rollout.Degraded
		unit.Block = z.barStuck(pod, leaf)
	}
	unit.StartedAt = z.startedAt(pod, move)
	if r, ok := z.o.Refusals[unit.Name]; ok {
		leaf.RetryAt, leaf.RetryReason = r.At, r.Reason
	}
	return unit
}

// minReady is how long a Pod has to be ready to be available.
func (z *zone) minReady() time.Duration {
	return max(z.Set.MinReady, seconds(z.o.Group.Spec.MinReadySeconds))
}

// ripens is true of a Pod at an old revision that is ready and not available yet.
// Of one at its target the engine knows that by itself.
func (z *zone) ripens(pod *Pod) bool {
	return pod.Revision != z.UpdateRevision && z.o.Now.Before(pod.Since.Add(z.minReady()))
}

// ripening keeps such a Pod from being replaced as one that is broken.
func (z *zone) ripening(pod *Pod) *rollout.Block {
	until := pod.Since.Add(z.minReady())
	return &rollout.Block{
		Reason: ReasonRipening, Message: "it has to stay ready until " + rollout.Clock(until),
		Since: pod.Since, Until: until,
	}
}

func (z *zone) podName(ordinal int) string { return z.Name + "-" + strconv.Itoa(ordinal) }

// onItsWay is true of a replica that has no Pod, or one that goes or may go at
// any moment.
func (z *zone) onItsWay(pod *Pod, move *v1alpha1.Move) bool {
	return pod == nil || pod.Terminating || stands(move, pod.UID, pod.ResourceVersion) || z.goesFirst(pod)
}

// returnsAt is the revision at which a Pod comes back that is created now.
func (z *zone) returnsAt() string {
	if z.held() {
		return z.CurrentRevision
	}
	return z.UpdateRevision
}

// held is true while the zone brings Pods back at the current revision, and will
// do so for as long as nothing is permitted.
func (z *zone) held() bool { return z.rolling() && !z.open() && z.moves[""] == nil }

// goesFirst is true of the Pod that goes first once the zone is opened, as it may
// be at any moment.
func (z *zone) goesFirst(pod *Pod) bool {
	if m := z.moves[""]; m == nil || m.Lend || z.open() {
		return false
	}
	for _, ordinal := range z.ordinals() {
		if first := z.pod(ordinal); first != nil && first.Revision != z.UpdateRevision {
			return first == pod
		}
	}
	return false
}

// reason says why a replica is not ready. It stays the same from the moment at
// which it is decided that a Pod is replaced until it is ready, unless something
// is wrong, so that the status need not be written for each stage of that.
func (z *zone) reason(pod *Pod, move *v1alpha1.Move) string {
	switch {
	case move != nil:
		return "being replaced since " + rollout.Clock(move.At.Time) + because(pod)
	case pod == nil:
		return "not there yet"
	case pod.Terminating:
		return "terminating"
	case pod.Ready:
		return ""
	case pod.Since.IsZero():
		return "not ready" + cause(pod.Reason)
	default:
		return "not ready since " + rollout.Clock(pod.Since) + cause(pod.Reason)
	}
}

func cause(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

// because is the reason why a new Pod is not ready, if it does not just start.
func because(pod *Pod) string {
	if pod == nil || pod.Terminating || pod.Ready {
		return ""
	}
	switch pod.Reason {
	case "ContainersNotReady", "ContainersNotInitialized", "ContainerCreating", "PodInitializing", "Pending":
		return ""
	default:
		return cause(pod.Reason)
	}
}

// startedAt is when a replica was moved towards the target; deadlines are
// measured from there, or from a later wish to try again.
func (z *zone) startedAt(pod *Pod, move *v1alpha1.Move) time.Time {
	if z.row.StartedAt == nil || z.row.Target != z.UpdateRevision {
		return time.Time{}
	}
	at := z.row.StartedAt.Time
	switch {
	case move != nil:
		at = later(at, move.At.Time)
	case pod != nil && pod.Revision == z.UpdateRevision:
		at = later(at, pod.Created)
	}
	if retry := z.o.Group.Spec.Retry; retry != nil {
		at = later(at, retry.At.Time)
	}
	return at
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// barStuck is why a Pod that is outdated and not ready is not replaced, nil if it
// may be.
func (z *zone) barStuck(pod *Pod, leaf *rollout.Leaf) *rollout.Block {
	switch {
	case leaf.Current == leaf.Target:
		return nil
	case z.o.Group.Spec.StuckPods == v1alpha1.KeepStuckPods:
		return &rollout.Block{Reason: ReasonStuck, Message: "it is " + leaf.Reason + ", and spec.stuckPods is " + string(v1alpha1.KeepStuckPods)}
	case z.barred && !z.gains(pod):
		return z.heldBack(leaf)
	default:
		return nil
	}
}

// barMissing is why a replica without a Pod waits for its zone.
func (z *zone) barMissing(leaf *rollout.Leaf) *rollout.Block {
	if !z.barred || leaf.Current == leaf.Target {
		return nil
	}
	return z.heldBack(leaf)
}

func (z *zone) heldBack(leaf *rollout.Leaf) *rollout.Block {
	return &rollout.Block{
		Reason:  ReasonHeld,
		Message: "it is " + leaf.Reason + ", and its zone, which is held by its partition, brings it back at " + z.CurrentRevision,
	}
}

// gains is true if a Pod comes back at another revision while its zone is held.
func (z *zone) gains(pod *Pod) bool { return pod.Revision != z.CurrentRevision }
