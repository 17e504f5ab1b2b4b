package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/rollout"
)

// gated goes to the gate of a stage that is not passed.
func (m *moduleAnswer) gated(ctx context.Context, stage string) error {
	link := m.stage(stage, m.e.Reason)
	link.Next = m.fleet("approve", "--stage", stage)
	m.add(link)
	gates, err := m.notPassed(ctx, m.ref)
	if err != nil {
		return err
	}
	last := &m.found.Links[len(m.found.Links)-1]
	for i := range gates {
		if s := &gates[i].Spec; s.Revision == m.e.Target && s.Stage == stage {
			last.Next = ""
			m.add(m.undecided(&gates[i]))
			return nil
		}
	}
	return nil
}

// notPassed are the gates of an object that are refused or not decided.
func (a *asker) notPassed(ctx context.Context, target describe.Ref) ([]v1alpha1.RolloutGate, error) {
	gates := &v1alpha1.RolloutGateList{}
	if err := a.Client.List(ctx, gates, client.InNamespace(target.Namespace)); err != nil {
		return nil, fmt.Errorf("list RolloutGates: %w", err)
	}
	return slices.DeleteFunc(gates.Items, func(g v1alpha1.RolloutGate) bool {
		return g.Spec.TargetRef.Kind != target.Kind || g.Spec.TargetRef.Name != target.Name ||
			apimeta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.GatePassed)
	}), nil
}

// gate is a RolloutGate: decided, or not.
func (a *asker) gate(ctx context.Context, ref describe.Ref, _ bool) (answer, error) {
	g := &v1alpha1.RolloutGate{}
	if err := a.get(ctx, ref, g); err != nil {
		return answer{}, err
	}
	link := a.undecided(g)
	if c := apimeta.FindStatusCondition(g.Status.Conditions, v1alpha1.GatePassed); c != nil && c.Status == "True" {
		link = a.link(ref, "", "gate %s of %s has passed for %s%s", g.Spec.Gate, describe.UnitOfGate(g), g.Spec.Revision, colon(c.Message))
		link.Ring, link.Phase, link.Since = describe.RingOf(g.Spec.TargetRef.Kind), rollout.PhaseComplete, describe.TimeOrNil(c.LastTransitionTime.Time)
	}
	facts := []describe.Fact{
		describe.FactOf("of", strings.ToLower(g.Spec.TargetRef.Kind)+"/"+g.Spec.TargetRef.Name), describe.FactOf("unit", describe.UnitOfGate(g)), describe.FactOf("revision", g.Spec.Revision), describe.FactOf("when", g.Spec.When),
	}
	facts = append(facts, measuredFacts(g.Status.Measurement)...)
	return answer{Links: []Link{link}, Facts: facts}, nil
}

// measuredFacts are what a verdict is based on: what the source was asked, and the last values, the
// newest first.
func measuredFacts(m *v1alpha1.GateMeasurement) []describe.Fact {
	if m == nil {
		return nil
	}
	facts := []describe.Fact{describe.FactOf("asked", m.Sent)}
	for i := range m.Last {
		s := &m.Last[i]
		facts = append(facts, describe.FactOf("measured", strings.TrimSuffix(rollout.Clock(s.At.Time)+" "+string(s.Result)+": "+s.Value, ": ")))
	}
	return facts
}

// undecided is a gate as the root of a chain.
func (a *asker) undecided(g *v1alpha1.RolloutGate) Link {
	s, unit := &g.Spec, describe.UnitOfGate(g)
	target := describe.Ref{Kind: s.TargetRef.Kind, Namespace: g.Namespace, Name: s.TargetRef.Name}
	link := a.link(describe.RefTo(describe.KindGate, g), rollout.ReasonGate, "gate %s of %s has not been decided for %s", s.Gate, unit, s.Revision)
	link.Ring, link.Phase, link.Since = describe.RingOf(g.Spec.TargetRef.Kind), rollout.PhaseWaiting, describe.TimeOrNil(g.CreationTimestamp.Time)
	c := apimeta.FindStatusCondition(g.Status.Conditions, v1alpha1.GatePassed)
	switch {
	case c != nil && c.Status == "False":
		link.Reason, link.Since = rollout.ReasonGateRefused, describe.TimeOrNil(c.LastTransitionTime.Time)
		link.Sentence = a.place() + fmt.Sprintf("gate %s of %s was refused for %s%s", s.Gate, unit, s.Revision, colon(c.Message))
	case c != nil:
		link.Sentence += colon(c.Message)
	}
	if link.Next = a.spillway("approve", describe.RefTo(describe.KindGate, g)); link.Ring == manager.RingFleet {
		link.Next = a.spillway("fleet approve", target, "--stage", s.Stage, "--gate", s.Gate)
	}
	return link
}

// atGate goes to the gate that a rollout waits for: a refused one before one that is not
// decided. What was created in advance, and not reached, keeps nothing.
func (a *asker) atGate(ctx context.Context, target describe.Ref) ([]Link, error) {
	gates, err := a.notPassed(ctx, target)
	if err != nil {
		return nil, err
	}
	var links []Link
	for i := range gates {
		if gates[i].Spec.ReachedAt == nil || isMeasuredMeanwhile(&gates[i]) {
			continue
		}
		if link := a.undecided(&gates[i]); links == nil || link.Reason == rollout.ReasonGateRefused {
			links = []Link{link}
		}
	}
	return links, nil
}

// isMeasuredMeanwhile is true of a gate during a unit that rolls: until it is refused, nothing waits for it.
func isMeasuredMeanwhile(g *v1alpha1.RolloutGate) bool {
	return g.Spec.When == string(v1alpha1.GateDuring) && g.Spec.EndedAt == nil && !apimeta.IsStatusConditionFalse(g.Status.Conditions, v1alpha1.GatePassed)
}

// revision is a ModuleRevision: where it stands is what its module says.
func (a *asker) revision(ctx context.Context, ref describe.Ref, _ bool) (answer, error) {
	r := &v1alpha1.ModuleRevision{}
	if err := a.get(ctx, ref, r); err != nil {
		return answer{}, err
	}
	module := describe.Ref{Kind: r.Spec.ModuleRef.Kind, Namespace: ref.Namespace, Name: r.Spec.ModuleRef.Name}
	found := answer{
		Links: []Link{a.link(ref, "", "%s is revision %d of %s", ref.Name, r.Spec.Number, module)},
		Facts: []describe.Fact{describe.FactOf("module", module.String()), describe.FactOf("number", fmt.Sprint(r.Spec.Number)), describe.FactOf("resolved", r.Status.Resolved)},
	}
	e, err := hub.Explain(ctx, a.Client, a.fleetOptions(), module.Kind, keyOf(module))
	if err != nil {
		return found, err
	}
	if e.Summary != nil && e.Target == ref.Name {
		found.Links[0] = a.link(ref, "", "%s is assigned to %d of %d clusters of %s", ref.Name, e.Summary.Updated, e.Summary.Total, module)
	}
	found.Links[0].Ring, found.Links[0].Phase = manager.RingFleet, rollout.PhaseComplete
	if e.Target == ref.Name && e.Phase != string(rollout.PhaseComplete) {
		found.Links[0].Phase, found.Then = rollout.PhaseProgressing, a.about(module)
	}
	return found, nil
}
