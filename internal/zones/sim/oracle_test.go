package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/zones/decision"
)

// oracle knows the rules, and nothing of the plan.
type oracle struct {
	world *world
	// disrupted are the replicas that were taken down while they were up, and that
	// have not been up since, with their zones.
	disrupted map[string]string
	// evicted are those of them that an eviction took down.
	evicted map[string]bool
	// open are zones that a user has opened, and the generation of that: what their controller does in them
	// until it has seen that they are held is on the user.
	open map[string]int64
	// removed are the Pods that go with a downscale, with their zones.
	removed map[string]string
	// violations are what it has seen, in words.
	violations []string
}

func newOracle(w *world) *oracle {
	return &oracle{world: w, disrupted: map[string]string{}, evicted: map[string]bool{}, open: map[string]int64{}, removed: map[string]string{}}
}

func (o *oracle) complainf(format string, args ...any) {
	o.violations = append(o.violations, fmt.Sprintf(format, args...))
}

// removes notes the Pods of a zone that its spec does not ask for any more.
func (o *oracle) removes(s *set) {
	for i := range o.world.pods {
		if p := &o.world.pods[i]; p.owner == s.uid && !o.isReplica(s, p) {
			o.removed[p.name] = s.name
		}
	}
}

func (o *oracle) exposed(s *set) { o.open[s.name] = s.generation }

func (o *oracle) gone(zone string) {
	delete(o.open, zone)

	for name, of := range o.disrupted {
		if of == zone {
			delete(o.disrupted, name)
		}
	}
}

func (o *oracle) isDisrupted(name string) bool { return o.disrupted[name] != "" }

// tookDown checks the rules in the moment in which a Pod is taken down.
func (o *oracle) tookDown(s *set, p *pod, up bool, by string) {
	o.look()

	if !up && strings.HasPrefix(by, "manager") && o.isReplica(s, p) {
		o.checkRepair(s, p, by)
	}

	if !up || !o.isReplica(s, p) || by == "the controller" && o.open[s.name] > 0 {
		return
	}

	o.world.count("downs")
	o.disrupted[p.name], o.evicted[p.name] = s.name, by == eviction

	o.checkOneZone(by)
	o.checkBudget(s, by)
	o.checkRemoved(s, p, by)
}

// checkRepair: what is down is not replaced while another zone is disrupted; and what
// may become ready, since it was, takes a place in the budget.
func (o *oracle) checkRepair(s *set, p *pod, by string) {
	w, down := o.world, 1

	for name, zone := range o.disrupted {
		switch {
		case o.evicted[name]:
		case zone != s.name:
			o.complainf("%s is replaced by %s, though it is down, while %s is disrupted", p.name, by, name)
		case name != p.name:
			down++
		}
	}

	after := 300 * time.Second
	if seconds := w.group.spec.StuckAfterSeconds; seconds != nil {
		after = time.Duration(*seconds) * time.Second
	}

	mayRecover := !p.broken && p.wasReady && w.now.Before(p.since.Add(after))
	w.count("repairs")

	if limit := o.limit(s); mayRecover && down > limit {
		o.complainf("%s is replaced by %s, though it may become ready: %d Pods are down, %d may be", p.name, by, down, limit)
	}
}

// checkRemoved: what goes with a downscale is down until it is gone.
func (o *oracle) checkRemoved(s *set, p *pod, by string) {
	for name, zone := range o.removed {
		if zone != s.name {
			o.complainf("%s is taken down by %s although %s has not gone yet", p.name, by, name)
		}
	}
}

func (o *oracle) isReplica(s *set, p *pod) bool {
	return p.ordinal >= s.first && p.ordinal < s.first+s.replicas
}

// look forgets what is up again, or not wanted any more.
func (o *oracle) look() {
	w := o.world
	for name, zone := range o.disrupted {
		s, p := w.set(zone), w.podNamed(name)
		if s == nil || p != nil && (o.isBack(s, p) || !o.isReplica(s, p)) || !o.wants(s, name) {
			delete(o.disrupted, name)
		}
	}

	for name, zone := range o.removed {
		if s, p := w.set(zone), w.podNamed(name); s == nil || p == nil || o.isReplica(s, p) {
			delete(o.removed, name)
		}
	}

	for i := range w.sets {
		s := &w.sets[i]
		if spec := w.seen[s.uid]; spec.generation > o.open[s.name] && spec.partition == decision.Held {
			delete(o.open, s.name)
		}
	}
}

// isBack is true once a Pod is up again. Where Pods flap it is so immediately: that it
// breaks before it has been ready for long enough is something that no view may
// show in time.
func (o *oracle) isBack(s *set, p *pod) bool {
	return o.world.isUp(s, p) || o.world.flaps && p.ready && !p.terminating
}

func (o *oracle) wants(s *set, name string) bool {
	for i := range s.replicas {
		if s.podName(s.first+i) == name {
			return true
		}
	}

	return false
}

func (o *oracle) checkOneZone(by string) {
	var all []string
	for _, zone := range o.disrupted {
		if !slices.Contains(all, zone) {
			all = append(all, zone)
		}
	}

	if len(all) > 1 {
		slices.Sort(all)
		o.complainf("%v are disrupted at the same time, the last by %s", all, by)
	}
}

// checkBudget counts what was taken down; in a world in which nothing breaks
// automatically, all that is not up.
func (o *oracle) checkBudget(s *set, by string) {
	w, down := o.world, 0

	for i := range s.replicas {
		name := s.podName(s.first + i)
		down += one(o.isDisrupted(name) || !w.flaps && !w.isUp(s, w.pod(s, s.first+i)))
	}

	if limit := o.limit(s); down > limit {
		o.complainf("%s: %d Pods are down, %d may be, the last by %s", s.name, down, limit, by)
	}
}

// limit is how many Pods of a zone may be down. Where users scale, a limit in
// percent may have been larger a moment ago.
func (o *oracle) limit(s *set) int {
	limit := o.world.group.spec.MaxUnavailable

	switch {
	case limit == nil:
		return 1
	case limit.StrVal == "":
		return limit.IntValue()
	default:
		percent := 0
		_, _ = fmt.Sscanf(limit.StrVal, "%d%%", &percent)
		replicas := s.replicas

		if o.world.flaps {
			replicas = max(replicas, 3)
		}

		return max(1, replicas*percent/100)
	}
}

// planned checks a plan against the view from which it was made.
func (o *oracle) planned(v *decision.Observed, p *decision.Plan) {
	if p.Permits && len(p.Writes) > 0 {
		o.complainf("one pass permits and acts")
	}

	if !p.Permits {
		return
	}

	if len(v.Group.Spec.MaintenanceWindows) > 0 && v.Now.Sub(noon)%(3*time.Minute) >= windowSeconds*time.Second {
		o.complainf("moves are permitted outside of the maintenance windows")
	}

	if l := v.Group.Status.Lock; l != nil && l.Holder == eviction && v.Now.Before(l.Expires.Time) {
		o.complainf("moves are permitted although an eviction holds the lock")
	}

	for _, m := range p.Status.Moves {
		if !hasMove(v.Group.Status.Moves, m) {
			o.checkMove(v, &m, p.Status.Moves)
		}
	}
}

func hasMove(moves []v1alpha1.Move, m v1alpha1.Move) bool {
	return slices.ContainsFunc(moves, func(old v1alpha1.Move) bool {
		return old.UID == m.UID && old.ResourceVersion == m.ResourceVersion && old.Pod == m.Pod
	})
}

func (o *oracle) checkMove(v *decision.Observed, m *v1alpha1.Move, moves []v1alpha1.Move) {
	s := observedSet(v, m.Zone)

	switch {
	case v.Group.Spec.Pause != nil || s.Settings.Paused:
		o.complainf("%s moves under a pause", m.Zone)
	case s.Deleting:
		o.complainf("%s moves though it is being deleted", m.Zone)
	}

	if p := observedPod(s, m.Pod); m.Pod == "" && !m.Lend || m.Pod != "" && available(v, s, p) {
		o.checkHealthy(v, s, m, moves)
	}
}

// checkHealthy: before a Pod is taken down that is up, everything of its zone that
// is outdated and broken is replaced, every other zone is up, and those that are
// up to date have soaked.
func (o *oracle) checkHealthy(v *decision.Observed, s *decision.Set, m *v1alpha1.Move, moves []v1alpha1.Move) {
	for i := range s.Pods {
		p := &s.Pods[i]
		broken := p.Revision != s.UpdateRevision && !p.Ready && !p.Terminating && p.Ordinal < s.FirstOrdinal+s.Replicas && p.Ordinal >= s.FirstOrdinal
		spared := v.Group.Spec.StuckPods == v1alpha1.KeepStuckPods || m.Pod == ""

		if broken && !spared && !slices.ContainsFunc(moves, func(m v1alpha1.Move) bool { return m.Pod == p.Name }) {
			o.complainf("%s is to be replaced although %s is outdated and broken", m.Pod, p.Name)
		}
	}

	for i := range v.Sets {
		if other := &v.Sets[i]; other.Name != s.Name {
			o.checkOther(v, other, m)
		}
	}
}

func (o *oracle) checkOther(v *decision.Observed, s *decision.Set, m *v1alpha1.Move) {
	var last time.Time
	current := true

	for i := range s.Replicas {
		p := ordinal(s, s.FirstOrdinal+i)
		if p == nil || !available(v, s, p) {
			o.complainf("%s/%s moves though %s is not wholly up", m.Zone, m.Pod, s.Name)

			return
		}

		current = current && p.Revision == s.UpdateRevision
		if p.Since.After(last) {
			last = p.Since
		}
	}

	if soak := v.Group.Spec.Soak; soak != nil && current && v.Now.Before(last.Add(soak.Duration)) {
		o.complainf("%s/%s moves though %s has to soak", m.Zone, m.Pod, s.Name)
	}
}

func observedSet(v *decision.Observed, name string) *decision.Set {
	return &v.Sets[slices.IndexFunc(v.Sets, func(s decision.Set) bool { return s.Name == name })]
}

func observedPod(s *decision.Set, name string) *decision.Pod {
	if i := slices.IndexFunc(s.Pods, func(p decision.Pod) bool { return p.Name == name }); i >= 0 {
		return &s.Pods[i]
	}

	return nil
}

func ordinal(s *decision.Set, n int) *decision.Pod {
	if i := slices.IndexFunc(s.Pods, func(p decision.Pod) bool { return p.Ordinal == n }); i >= 0 {
		return &s.Pods[i]
	}

	return nil
}

func available(v *decision.Observed, s *decision.Set, p *decision.Pod) bool {
	minReady := max(s.MinReady, time.Duration(v.Group.Spec.MinReadySeconds)*time.Second)

	return p.Ready && !v.Now.Before(p.Since.Add(minReady))
}

// statusWritten: no manager takes the lock from another client.
func (o *oracle) statusWritten(_ *view, s *v1alpha1.RolloutGroupStatus) {
	if holds(o.world) && (s.Lock == nil || s.Lock.Holder != eviction) {
		o.complainf("the lock is taken from an eviction")
	}
}
