package explain

import (
	"context"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/rollout"
)

// disruptionBudget is a native one: whether anything may be evicted.
func (a *asker) disruptionBudget(ctx context.Context, ref describe.Ref, _ bool) (answer, error) {
	b := &policyv1.PodDisruptionBudget{}
	if err := a.get(ctx, ref, b); err != nil {
		return answer{}, err
	}
	if b.Status.DisruptionsAllowed > 0 {
		return answer{Links: []Link{a.link(ref, "", "PodDisruptionBudget %s allows %d disruptions", ref.Name, b.Status.DisruptionsAllowed)}}, nil
	}
	link := a.link(ref, ReasonNoBudget, "PodDisruptionBudget %s allows no disruption: %d of %d Pods are healthy, %d must be",
		ref.Name, b.Status.CurrentHealthy, b.Status.ExpectedPods, b.Status.DesiredHealthy)
	link.Next = a.kubectl("describe", ref)
	return answer{Links: []Link{link}}, nil
}

// zoneBudget is one of ours: whether anything may be evicted at all.
func (a *asker) zoneBudget(ctx context.Context, ref describe.Ref, _ bool) (answer, error) {
	b := &zonesv1.ZoneAwarePodDisruptionBudget{}
	if err := a.get(ctx, ref, b); err != nil {
		return answer{}, err
	}
	var facts []describe.Fact
	for name, d := range b.Status.DisruptedPods {
		facts = append(facts, describe.FactOf("evicted", fmt.Sprintf("%s, at %s", name, rollout.Clock(d.At.Time))))
	}
	if n := b.Spec.MaxUnavailable; n != nil && *n == 0 {
		link := a.link(ref, ReasonNoBudget, "ZoneAwarePodDisruptionBudget %s allows no eviction: spec.maxUnavailable is 0", ref.Name)
		link.Next = a.kubectl("patch", ref, "--type=merge", "-p", `{"spec":{"maxUnavailable":1}}`)
		return answer{Links: []Link{link}, Facts: facts}, nil
	}
	return answer{Links: []Link{a.link(ref, "", "ZoneAwarePodDisruptionBudget %s allows evictions, in one zone at a time", ref.Name)}, Facts: facts}, nil
}
