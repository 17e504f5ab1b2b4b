package guard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/replay"
	"github.com/spillway-dev/spillway/internal/zones/budget"
	"github.com/spillway-dev/spillway/internal/zones/lock"
	"github.com/spillway-dev/spillway/internal/zones/replica"
	"github.com/spillway-dev/spillway/rollout"
)

// eviction is what is known of the Pods that a budget is for when one of them is to
// be evicted.
type eviction struct {
	now    time.Time
	pod    *corev1.Pod
	owner  *zone
	budget *budget.Budget
	zones  []zone
	// partition is that of the Pod, empty in zone mode.
	partition string
	// group is the one whose lock is taken besides, nil if there is none.
	group *v1alpha1.RolloutGroup
}

// count is what is known of some Pods.
type count struct{ notReady, unknown int }

// decideBudget decides whether the budget allows the eviction. The Pod is a unit that
// moves, the others are units that are up or down. In zone mode one zone may be
// disrupted at a time, and in it as many as the budget says; in partition mode all
// Pods of a partition share the budget. The rest is the engine's.
func (e *eviction) decideBudget(most int) verdict {
	root := e.zoneTree(most)
	path := []string{e.owner.set.Name, e.pod.Name}
	if e.partition != "" {
		root, path = e.partitionTree(most), []string{e.pod.Name}
	}
	answer := replay.Decide("eviction of "+e.pod.Namespace+"/"+e.pod.Name, rollout.Observed{Now: e.now, Self: "eviction", Root: root}).At(path...)
	switch {
	case answer.Step != nil:
		return verdict{allowed: true}
	case e.partition != "":
		return verdict{because: e.partitionCount().in("partition " + e.partition)}
	}
	return verdict{because: e.zoneClause(answer.Hold)}
}

// zoneTree has a unit for each zone.
func (e *eviction) zoneTree(most int) rollout.Unit {
	root := rollout.Unit{Name: e.budget.Object.Name, Group: true, Policy: rollout.Policy{Order: rollout.OneAtATime}}
	for i := range e.zones {
		z := &e.zones[i]
		unit := rollout.Unit{Name: z.set.Name, Group: true, Children: e.leaves(z)}
		if z.set.UID == e.owner.set.UID {
			unit.Policy.MaxUnavailable = rollout.Number(most)
			unit.Children = append(unit.Children, e.moving())
		}
		root.Children = append(root.Children, unit)
	}
	return root
}

// partitionTree has the Pods of the partition in the other zones.
func (e *eviction) partitionTree(most int) rollout.Unit {
	root := rollout.Unit{Name: "partition " + e.partition, Group: true, Policy: rollout.Policy{MaxUnavailable: rollout.Number(most), MinReady: e.budget.Delay}}
	for i := range e.zones {
		if z := &e.zones[i]; z.set.UID != e.owner.set.UID {
			root.Children = append(root.Children, e.leaves(z)...)
		}
	}
	root.Children = append(root.Children, e.moving())
	return root
}

// leaves are the other replicas of a zone, as far as they matter.
func (e *eviction) leaves(z *zone) []rollout.Unit {
	others := e.others(z)
	leaves := make([]rollout.Unit, len(others))
	for i, o := range others {
		leaf := rollout.Leaf{Current: "there", Target: "there", HealthySince: o.since}
		switch {
		case o.up:
			leaf.Health = rollout.Healthy
		case o.known:
			leaf.Health = rollout.Degraded
		}
		leaves[i] = rollout.Unit{Name: o.name, Leaf: leaf}
	}
	return leaves
}

func (e *eviction) partitionCount() count {
	var sum count
	for i := range e.zones {
		if z := &e.zones[i]; z.set.UID != e.owner.set.UID {
			c := e.count(z)
			sum = count{sum.notReady + c.notReady, sum.unknown + c.unknown}
		}
	}
	return sum
}

// zoneClause names what is down in the zone that the Pod waits for.
func (e *eviction) zoneClause(hold *rollout.Hold) string {
	for i := range e.zones {
		z := &e.zones[i]
		if hold != nil && hold.Reason == rollout.ReasonTurn && len(hold.On) > 0 && hold.On[0] == z.set.Name {
			return e.count(z).in(z.set.Name)
		}
	}
	return e.count(e.owner).in(e.owner.set.Name)
}

// in says in rollout-operator's words what is down.
func (c count) in(span string) string {
	var parts []string
	if c.notReady > 0 {
		parts = append(parts, fmt.Sprintf("%d %s not ready", c.notReady, plural(c.notReady)))
	}
	if c.unknown > 0 {
		parts = append(parts, fmt.Sprintf("%d %s unknown", c.unknown, plural(c.unknown)))
	}
	return strings.Join(parts, ", ") + " in " + span
}

func (e *eviction) count(z *zone) count {
	var c count
	for _, o := range e.others(z) {
		switch {
		case !o.known:
			c.unknown++
		case !o.up || e.partition != "" && e.ripens(o.since):
			c.notReady++
		}
	}
	return c
}

// other is a replica of a zone besides the Pod that is to be evicted.
type other struct {
	name      string
	up, known bool
	since     time.Time
}

// others are the replicas of a zone that are of the same partition, and those of which
// that is not known. A zone without a Pod of the partition has lost it.
func (e *eviction) others(z *zone) []other {
	var found []other
	zone := replica.ZoneOf(z.set)
	zone.Counted = int(z.set.Status.Replicas)
	for _, r := range replica.Of(zone, z.pods, func(p *corev1.Pod) replica.Pod { return replica.PodOf(z.set.Name, p) }) {
		switch {
		case r.Pod < 0:
			found = append(found, other{name: r.Name + " unknown"})
		case e.isConcerned(&z.pods[r.Pod], r.State):
			found = append(found, e.other(&z.pods[r.Pod], r.State))
		}
	}
	if len(found) == 0 && (e.partition != "" || zone.Unobserved) {
		return []other{{name: z.set.Name + " unknown"}}
	}
	return found
}

// isConcerned is true of a Pod of the partition. The Pod that is to be evicted is not,
// unless its controller may be about to take it as well.
func (e *eviction) isConcerned(p *corev1.Pod, s replica.State) bool {
	partition, err := e.budget.PartitionOf(p.Name)
	return err == nil && partition == e.partition && (p.UID != e.pod.UID || s == replica.Unknown)
}

// other is up if the Pod is, and was not evicted just now.
func (e *eviction) other(p *corev1.Pod, s replica.State) other {
	since, _ := replica.ReadySince(p)
	if s == replica.Unknown {
		return other{name: p.Name + " unknown"}
	}
	return other{name: p.Name, known: true, up: s == replica.Up && !isPending(e.budget.Object, p, e.now), since: since}
}

// ripens is true of what is up, and has not been for long enough.
func (e *eviction) ripens(since time.Time) bool { return e.now.Before(since.Add(e.budget.Delay)) }

func plural(n int) string {
	if n > 1 {
		return "pods"
	}
	return "pod"
}

// decideLock decides whether evictions may go on beside what else is done to the
// group; also for a Pod of which the group does not know.
func (e *eviction) decideLock() verdict {
	if e.group == nil {
		return verdict{allowed: true}
	}
	root := rollout.Unit{
		Name: e.group.Name, Group: true, Lock: lock.Observed(&e.group.Status, e.now), Children: []rollout.Unit{e.moving()},
	}
	answer := replay.Decide("eviction beside RolloutGroup "+e.group.Namespace+"/"+e.group.Name, rollout.Observed{Now: e.now, Self: lock.EvictionHolder(e.group.Name), Root: root}).At(e.pod.Name)
	if answer.Step != nil {
		return verdict{allowed: true}
	}
	return verdict{because: answer.Hold.Cause.Why}
}

// moving is the Pod that is to be evicted. Whether it is healthy does not matter.
func (e *eviction) moving() rollout.Unit {
	return rollout.Unit{Name: e.pod.Name, Leaf: rollout.Leaf{Current: "there", Target: "evicted", Health: rollout.Healthy}}
}

// record notes the eviction in the status of the budget, and forgets those that were
// seen or cannot come any more.
func (e *eviction) record() {
	status := &e.budget.Object.Status
	kept := map[string]zonesv1.DisruptedPod{e.pod.Name: {UID: e.pod.UID, At: metav1.NewMicroTime(e.now)}}
	for i := range e.zones {
		for j := range e.zones[i].pods {
			p := &e.zones[i].pods[j]
			if p.UID != e.pod.UID && isPending(e.budget.Object, p, e.now) {
				kept[p.Name] = status.DisruptedPods[p.Name]
			}
		}
	}
	status.DisruptedPods = kept
}

// isPending is true of a Pod whose eviction was admitted and may still come.
func isPending(b *zonesv1.ZoneAwarePodDisruptionBudget, p *corev1.Pod, now time.Time) bool {
	d, ok := b.Status.DisruptedPods[p.Name]
	return ok && d.UID == p.UID && p.DeletionTimestamp == nil && now.Before(d.At.Add(lock.LandsWithin))
}

// refusing is the native budget that will refuse the eviction after us, empty if none
// will. What comes to nothing is not recorded, so nothing waits for it.
func refusing(budgets []policyv1.PodDisruptionBudget, pod *corev1.Pod) string {
	i := slices.IndexFunc(budgets, func(b policyv1.PodDisruptionBudget) bool {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		return err == nil && selector.Matches(labels.Set(pod.Labels)) && b.Status.DisruptionsAllowed <= 0
	})
	if i < 0 {
		return ""
	}
	return budgets[i].Name
}
