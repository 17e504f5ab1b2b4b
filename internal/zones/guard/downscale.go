package guard

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/replay"
	"github.com/spillway-dev/spillway/internal/zones/lock"
	"github.com/spillway-dev/spillway/internal/zones/replica"
	"github.com/spillway-dev/spillway/rollout"
)

// verdict is the answer to a downscale or an eviction.
type verdict struct {
	allowed bool
	// because is why not, after "because".
	because string
}

// decideDownscale decides whether a zone of a group may be scaled down now. The zone
// is a unit that moves; the others are units that must be healthy, of which one may be
// disrupted at a time; and there is the lock. The rest is the engine's.
func decideDownscale(g *group, c *change, now time.Time) verdict {
	moving := rollout.Unit{Name: c.name, Leaf: rollout.Leaf{
		Current: replicasText(*c.from), Target: replicasText(*c.to), Health: rollout.Healthy,
	}}
	block, err := g.recentDownscale(c.name, now)
	if err != nil {
		return verdict{because: "parsing downscale annotations failed."}
	}
	moving.Block = block
	root := rollout.Unit{
		Name: g.object.Name, Group: true, Policy: rollout.Policy{Order: rollout.OneAtATime},
		Lock: lock.ForDownscale(&g.object.Status, now), Children: []rollout.Unit{moving},
	}
	for i := range g.zones {
		if z := &g.zones[i]; z.set.Name != c.name {
			root.Children = append(root.Children, z.bystander())
		}
	}
	plan := replay.Decide("downscale of "+g.object.Namespace+"/"+c.name, rollout.Observed{Now: now, Self: g.self(c), Root: root})
	answer := plan.At(c.name)
	if answer.Step != nil {
		return verdict{allowed: true}
	}
	return verdict{because: g.clause(answer.Hold)}
}

// takesBack is true of a downscale that takes nothing down, which needs neither the lock nor that
// others are healthy.
func (g *group) takesBack(z *zone, c *change) bool {
	return replica.Count(z.set) == int(*c.from) && lock.TakesBack(&g.object.Status, z.set, z.pods, int(*c.to))
}

// self is the downscale as a holder of the lock. It holds it already only if it is
// tried again after it was admitted; another one that is under way is another client.
func (g *group) self(c *change) string {
	holder, before := lock.DownscaleHolder(c.name), g.object.Status.Downscale
	if before != nil && !lock.IsRetry(before, g.wanted(c)) {
		return holder + "/again"
	}
	return holder
}

// wanted is what is written down for a change.
func (g *group) wanted(c *change) *v1alpha1.Downscale {
	return &v1alpha1.Downscale{
		Zone: c.name, UID: g.zone(c.name).set.UID, From: *c.from, To: *c.to, Prepares: true, ResourceVersion: c.resourceVersion,
	}
}

// settle closes the downscale that is written down, if it can be seen.
func (g *group) settle() {
	d := g.object.Status.Downscale
	if d == nil || d.Refused {
		return
	}
	if z := g.zone(d.Zone); z != nil && z.set.UID == d.UID && replica.Count(z.set) <= int(d.To) {
		lock.Land(&g.object.Status)
	}
}

func replicasText(n int32) string { return strconv.Itoa(int(n)) + " replicas" }

// recentDownscale is what the minimum time of another zone forbids, nil for nothing.
func (g *group) recentDownscale(except string, now time.Time) (*rollout.Block, error) {
	var others []lock.Downscaled
	for i := range g.zones {
		set := g.zones[i].set
		if set.Name == except {
			continue
		}
		d, waits, err := lock.Recently(&g.object.Status, set.Name, set.Labels, set.Annotations)
		if err != nil {
			return nil, fmt.Errorf("StatefulSet %s: %w", set.Name, err)
		}
		if waits {
			others = append(others, d)
		}
	}
	return lock.MinTime(now, others, func(d lock.Downscaled) string {
		return fmt.Sprintf("statefulset %s was downscaled at %s and is labelled to wait %s between zone downscales", d.Zone, d.Last.UTC(), d.Wait)
	}), nil
}

// bystander is another zone, as one unit.
func (z *zone) bystander() rollout.Unit {
	leaf := rollout.Leaf{Current: "settled", Target: "settled", Health: rollout.Healthy, Settled: true}
	if notUpdated, notReady := z.unsettled(); notUpdated > 0 || notReady > 0 {
		leaf.Health, leaf.Reason = rollout.Degraded, "not settled"
	}
	return rollout.Unit{Name: z.set.Name, Leaf: leaf}
}

// clause says in rollout-operator's words why a zone is not scaled down.
func (g *group) clause(hold *rollout.Hold) string {
	if hold == nil {
		return "nothing would change"
	}
	if hold.Reason == rollout.ReasonTurn && len(hold.On) > 0 {
		i := slices.IndexFunc(g.zones, func(z zone) bool { return z.set.Name == hold.On[0] })
		if i >= 0 {
			notUpdated, notReady := g.zones[i].unsettled()
			return fmt.Sprintf("statefulset %s has %d non-updated replicas and %d non-ready replicas", hold.On[0], notUpdated, notReady)
		}
	}
	if hold.Cause.Subject == "" && hold.Cause.Why != "" {
		return hold.Cause.Why
	}
	return hold.Message
}
