package decision

import (
	"cmp"
	"slices"
	"time"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/zones/replica"
	"github.com/spillway-dev/spillway/rollout"
)

// leaf is a replica as the engine sees it. A Pod beyond the spec, or one that is about to be, is
// being removed, and down until it is gone.
func (z *zone) leaf(r *replica.Replica) rollout.Unit {
	pod := z.podOf(r)
	unit := rollout.Unit{Name: r.Name}
	if r.Beyond || r.State == replica.Leaving {
		unit.Leaf = rollout.Leaf{Current: rollout.Removed, Target: rollout.Removed, Health: rollout.Progressing, Reason: string(r.State)}
		return unit
	}
	move := z.moves[unit.Name]
	leaf := &unit.Leaf
	leaf.Target = z.UpdateRevision
	leaf.Reason = z.reason(pod, move)
	if move == nil && z.awaitsOthers(r) {
		leaf.Reason = z.awaits()
	}
	leaf.Settled = z.row.Revision == leaf.Target
	switch {
	case z.isBeingReplaced(pod, move):
		leaf.Current, leaf.Health = z.returnsAt(), rollout.Progressing
		leaf.Reason = cmp.Or(leaf.Reason, "about to be replaced")
	case r.State == replica.Up && z.ripens(pod):
		leaf.Current, leaf.Health = pod.Revision, rollout.Degraded
		leaf.Reason, unit.Block = "not ready for long enough yet", z.ripening(pod)
	case r.State == replica.Up:
		leaf.Current, leaf.Health, leaf.HealthySince = pod.Revision, rollout.Healthy, pod.Since
	default:
		leaf.Current, leaf.Health = pod.Revision, rollout.Degraded
		unit.Block = z.keptStuck(leaf)
	}
	leaf.MayRecover = z.isBeingReplaced(pod, move)
	if !leaf.MayRecover {
		leaf.RecoversBy = z.stuckAt(pod)
		leaf.MayRecover = z.o.Now.Before(leaf.RecoversBy)
	}
	leaf.Disrupted = move != nil || pod != nil && z.row.Revision != "" && pod.Revision != z.row.Revision
	leaf.Repairing = move != nil && move.Repair && !z.awaitsOthers(r)
	if !z.awaitsOthers(r) { // its time begins to run once it can be created
		unit.StartedAt = z.startedAt(pod, move)
	}
	if r, ok := z.o.Refusals[unit.Name]; ok {
		leaf.RetryAt, leaf.RetryReason = r.At, r.Reason
	}
	return unit
}

// podOf is the Pod of a replica, nil if there is none.
func (z *zone) podOf(r *replica.Replica) *Pod {
	if r.Pod < 0 {
		return nil
	}
	return &z.Pods[r.Pod]
}

// ripens is true of a Pod at an old revision that is ready and not available yet.
// Of one at its target the engine knows that automatically.
func (z *zone) ripens(pod *Pod) bool {
	return pod.Revision != z.UpdateRevision && z.o.Now.Before(pod.Since.Add(z.minReady()))
}

// ripening keeps such a Pod from being replaced as one that is broken.
func (z *zone) ripening(pod *Pod) *rollout.Block {
	until := pod.Since.Add(z.minReady())
	return &rollout.Block{
		Reason: ReasonRipening, Message: "soaking until " + rollout.Clock(until) + " (minReadySeconds)",
		Since: pod.Since, Until: until,
	}
}

// minReady is how long a Pod must be ready to be available.
func (z *zone) minReady() time.Duration {
	return max(z.MinReady, seconds(z.o.Group.Spec.MinReadySeconds))
}

// isBeingReplaced is true of a replica that has no Pod, or one that goes or may go at
// any moment.
func (z *zone) isBeingReplaced(pod *Pod, move *v1alpha1.Move) bool {
	return pod == nil || pod.Terminating || isUnchanged(move, pod.UID, pod.ResourceVersion) || z.goesFirst(pod)
}

// stuckAt is when a Pod that is not ready counts as stuck, so that it is replaced out of
// turn. Until then it may become ready.
func (z *zone) stuckAt(pod *Pod) time.Time {
	switch {
	case pod.Broken, z.isHopeless(pod):
		return time.Time{}
	case pod.Since.IsZero():
		return pod.Created.Add(stuckAfter(&z.o.Group.Spec))
	default:
		return pod.Since.Add(stuckAfter(&z.o.Group.Spec))
	}
}

// isHopeless is true of a Pod at a revision that is not wanted any more, and at which no Pod of
// the zone has been ready, as far as anybody knows: it never served, and that it will is not
// to be expected. One at the revision at which the whole zone was ready last only starts slowly.
func (z *zone) isHopeless(pod *Pod) bool {
	return pod.Revision != z.UpdateRevision && pod.Revision != z.row.Revision && !slices.ContainsFunc(z.Pods, func(other Pod) bool {
		return other.Revision == pod.Revision && !other.NeverReady
	})
}

// awaitsOthers is true of a replica that has no Pod because its controller waits until
// those of lower ordinals are ready. To repair these must not wait for it.
func (z *zone) awaitsOthers(r *replica.Replica) bool {
	return z.Ordered && r.State == replica.Absent && z.firstDown().Ordinal < r.Ordinal
}

// firstDown is the replica of the lowest ordinal that is down, where one is.
func (z *zone) firstDown() *replica.Replica {
	var first *replica.Replica
	for i := range z.replicas {
		r := &z.replicas[i]
		if !r.Beyond && r.State != replica.Up && (first == nil || r.Ordinal < first.Ordinal) {
			first = r
		}
	}
	return first
}

// awaits says for which replica one waits before it is created, and until when at most: an
// outdated Pod is replaced once it is stuck.
func (z *zone) awaits() string {
	first := z.firstDown()
	says := "not created before " + first.Name + " is ready"
	if pod := z.podOf(first); pod != nil && pod.Revision != z.UpdateRevision && z.o.Now.Before(z.stuckAt(pod)) && z.o.Group.Spec.StuckPods != v1alpha1.KeepStuckPods {
		says += ", or is replaced, at " + rollout.Clock(z.stuckAt(pod))
	}
	return says
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

// reason says why a replica is not ready. It stays the same from the moment at
// which it is decided that a Pod is replaced until it is ready, unless something
// is wrong, so that the status need not be written for each stage of that.
func (z *zone) reason(pod *Pod, move *v1alpha1.Move) string {
	if refused := z.refused(pod, move); refused != "" {
		return "not replaced yet" + refused
	}
	switch {
	case move != nil:
		return "being replaced since " + rollout.Clock(move.At.Time) + because(pod)
	case pod == nil:
		return "not created yet"
	case pod.Terminating:
		return "terminating"
	case pod.Ready:
		return ""
	case pod.Since.IsZero():
		return "not ready" + cause(pod.Reason) + z.outOfTurn(pod)
	default:
		return "not ready since " + rollout.Clock(pod.Since) + cause(pod.Reason) + z.outOfTurn(pod)
	}
}

// outOfTurn says of a Pod that its controller has replaced it: the zone was whole at another
// revision, was opened since, and Spillway has not begun to roll it.
func (z *zone) outOfTurn(pod *Pod) string {
	wasForced := z.row.Opened && z.held() && z.started() == nil && z.row.Revision != "" && z.row.Revision != z.UpdateRevision
	if !wasForced || pod.Revision != z.UpdateRevision {
		return ""
	}
	return ", replaced out of turn by Kubernetes: another client had set updateStrategy of StatefulSet " + z.Name
}

// refused is what the API server said to the write that would replace a Pod, empty
// if it said nothing, or the Pod has changed since.
func (z *zone) refused(pod *Pod, move *v1alpha1.Move) string {
	switch {
	case pod == nil:
		return ""
	case isUnchanged(move, pod.UID, pod.ResourceVersion):
		return z.o.refusalOf(pod.Name)
	case move == nil && z.goesFirst(pod):
		return z.o.refusalOf(z.Name)
	default:
		return ""
	}
}

// goesFirst is true of the Pod that goes first once the zone is opened, as it may
// be at any moment.
func (z *zone) goesFirst(pod *Pod) bool {
	if m := z.moves[""]; m == nil || m.Lend || z.open() {
		return false
	}
	for i := range z.replicas {
		if first := z.podOf(&z.replicas[i]); first != nil && !z.replicas[i].Beyond && first.Revision != z.UpdateRevision {
			return first == pod
		}
	}
	return false
}

// replicas are those of the set, best first: upwards, or downwards as the controller
// goes where the partition holds. That a status has not observed its spec concerns the
// whole group, so it is not said of each replica.
func (s *Set) replicas(leaving int) []replica.Replica {
	z := replica.Zone{Name: s.Name, First: s.FirstOrdinal, Replicas: s.Replicas, Leaving: leaving}
	replicas := replica.Of(z, s.Pods, func(p *Pod) replica.Pod {
		return replica.Pod{Ordinal: p.Ordinal, Ready: p.Ready, Terminating: p.Terminating}
	})
	if s.rolling() {
		slices.Reverse(replicas[:s.Replicas])
	}
	return replicas
}

// refusalOf is what the API server said to the last write of a name, as the end
// of a sentence.
func (o *Observed) refusalOf(name string) string {
	r, ok := o.Refusals[name]
	if !ok {
		return ""
	}
	return ", the API server refuses it: " + r.Reason
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

func cause(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
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
		at = ring.Later(at, move.At.Time)
	case pod != nil && pod.Revision == z.UpdateRevision:
		at = ring.Later(at, pod.Created)
	}
	if retry := z.o.Group.Spec.Retry; retry != nil {
		at = ring.Later(at, retry.At.Time)
	}
	return at
}

// keptStuck is why a Pod that is outdated and not ready is not replaced, nil if it
// may be.
func (z *zone) keptStuck(leaf *rollout.Leaf) *rollout.Block {
	if leaf.Current == leaf.Target || z.o.Group.Spec.StuckPods != v1alpha1.KeepStuckPods {
		return nil
	}
	return &rollout.Block{Reason: ReasonStuck, Message: "it is " + leaf.Reason + ", and spec.stuckPods is " + string(v1alpha1.KeepStuckPods)}
}
