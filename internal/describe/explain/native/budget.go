package native

import (
	"context"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain/chain"
	"github.com/spillway-dev/spillway/rollout"
)

// DisruptionBudget is a native one: whether anything may be evicted.
func (a *Asker) DisruptionBudget(ctx context.Context, ref describe.Ref, _ bool) (chain.Answer, error) {
	b := &policyv1.PodDisruptionBudget{}
	if err := a.Get(ctx, ref, b); err != nil {
		return chain.Answer{}, err
	}
	if b.Status.DisruptionsAllowed > 0 {
		return chain.Answer{Links: []chain.Link{a.Link(ref, "", "PodDisruptionBudget %s allows %d disruptions", ref.Name, b.Status.DisruptionsAllowed)}}, nil
	}
	link := a.Link(ref, chain.ReasonNoBudget, "PodDisruptionBudget %s allows no disruption: %d of %d Pods are healthy, %d must be",
		ref.Name, b.Status.CurrentHealthy, b.Status.ExpectedPods, b.Status.DesiredHealthy)
	link.Next = a.Kubectl("describe", ref)
	return chain.Answer{Links: []chain.Link{link}}, nil
}

// ZoneBudget is one of ours: whether anything may be evicted at all.
func (a *Asker) ZoneBudget(ctx context.Context, ref describe.Ref, _ bool) (chain.Answer, error) {
	b := &zonesv1.ZoneAwarePodDisruptionBudget{}
	if err := a.Get(ctx, ref, b); err != nil {
		return chain.Answer{}, err
	}
	var facts []describe.Fact
	for name, d := range b.Status.DisruptedPods {
		facts = append(facts, describe.FactOf("evicted", fmt.Sprintf("%s, at %s", name, rollout.Clock(d.At.Time))))
	}
	if n := b.Spec.MaxUnavailable; n != nil && *n == 0 {
		link := a.Link(ref, chain.ReasonNoBudget, "ZoneAwarePodDisruptionBudget %s allows no eviction: spec.maxUnavailable is 0", ref.Name)
		link.Next = a.Kubectl("patch", ref, "--type=merge", "-p", `{"spec":{"maxUnavailable":1}}`)
		return chain.Answer{Links: []chain.Link{link}, Facts: facts}, nil
	}
	return chain.Answer{Links: []chain.Link{a.Link(ref, "", "ZoneAwarePodDisruptionBudget %s allows evictions, in one zone at a time", ref.Name)}, Facts: facts}, nil
}
