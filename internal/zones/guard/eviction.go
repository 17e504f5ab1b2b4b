package guard

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/zones/budget"
	"github.com/spillway-dev/spillway/internal/zones/lock"
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
type count struct{ tested, notReady, unknown int }

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
	answer := rollout.Decide(rollout.Observed{Now: e.now, Self: "eviction", Root: root}).At(path...)
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

// leaves are the other Pods of a zone, as far as they matter, and one for each that is
// not known.
func (e *eviction) leaves(z *zone) []rollout.Unit {
	var leaves []rollout.Unit
	for _, p := range e.considered(z) {
		leaf := rollout.Leaf{Current: "there", Target: "there", Health: rollout.Healthy}
		if !e.isUp(p) {
			leaf.Health = rollout.Degraded
		}
		if since, ready := readySince(p); ready {
			leaf.HealthySince = since
		}
		leaves = append(leaves, rollout.Unit{Name: p.Name, Leaf: leaf})
	}
	for i := range e.unknown(z) {
		leaves = append(leaves, rollout.Unit{Name: z.set.Name + " unknown " + strconv.Itoa(i), Leaf: rollout.Leaf{Current: "there", Target: "there"}})
	}
	return leaves
}

func (e *eviction) partitionCount() count {
	var sum count
	for i := range e.zones {
		if z := &e.zones[i]; z.set.UID != e.owner.set.UID {
			c := e.count(z)
			sum = count{sum.tested + c.tested, sum.notReady + c.notReady, sum.unknown + c.unknown}
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
	c := count{unknown: e.unknown(z)}
	for _, p := range e.considered(z) {
		c.tested++
		if !e.isUp(p) || e.partition != "" && e.ripens(p) {
			c.notReady++
		}
	}
	return c
}

// unknown is how many replicas have no Pod. Of what partition these would be no
// knows; and a zone without a Pod of the partition has lost it. While the controller of
// a zone has not seen its spec, it may be about to take any of its Pods.
func (e *eviction) unknown(z *zone) int {
	if z.set.Generation != z.set.Status.ObservedGeneration {
		return max(1, z.replicas())
	}
	missing := max(0, max(z.replicas(), int(z.set.Status.Replicas))-len(z.pods))
	if e.partition != "" && missing == 0 && len(e.considered(z)) == 0 {
		return 1
	}
	return missing
}

// considered are the other Pods of a zone that are of the same partition.
func (e *eviction) considered(z *zone) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range z.pods {
		p := &z.pods[i]
		if partition, err := e.budget.PartitionOf(p.Name); err == nil && partition == e.partition && p.UID != e.pod.UID {
			pods = append(pods, p)
		}
	}
	return pods
}

// isUp is true of a Pod that is ready and was not evicted just now.
func (e *eviction) isUp(p *corev1.Pod) bool {
	return isReady(p) && !isPending(e.budget.Object, p, e.now)
}

// ripens is true of a Pod that is up, and has not been for long enough.
func (e *eviction) ripens(p *corev1.Pod) bool {
	since, _ := readySince(p)
	return e.now.Before(since.Add(e.budget.Delay))
}

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
	answer := rollout.Decide(rollout.Observed{Now: e.now, Self: lock.EvictionHolder(e.group.Name), Root: root}).At(e.pod.Name)
	if answer.Step != nil {
		return verdict{allowed: true}
	}
	_, clause, _ := strings.Cut(answer.Message(), " is waiting: ")
	return verdict{because: clause}
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
