package act

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/reasons"
)

// prepareVerdict decides a gate, of a rollout of any ring.
func prepareVerdict(ctx context.Context, c client.Client, r Request, who Author) (*Write, error) {
	verdict, word := metav1.ConditionTrue, reasons.Approved
	if r.Verb == Refuse {
		verdict, word = metav1.ConditionFalse, reasons.Refused
	}
	gate, err := find(ctx, c, r, verdict)
	if err != nil {
		return nil, err
	}
	w := &Write{
		Object: gate, before: gate.DeepCopy(), verdict: true, Word: word,
		Said: fmt.Sprintf("gate %s of %s is %s for %s", gate.Spec.Gate, describe.UnitOfGate(gate), past(r.Verb), targetOf(gate)),
	}
	SetVerdict(gate, verdict, who)
	if owner := metav1.GetControllerOf(gate); owner != nil {
		w.About = corev1.ObjectReference{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: gate.Namespace, Name: owner.Name, UID: owner.UID}
	}
	return w, nil
}

// past is what a gate is after its verdict.
func past(v Verb) string {
	if v == Refuse {
		return "refused"
	}
	return "approved"
}

// find returns the gate that is meant: by its name, or the only one of a rollout that is not
// decided so yet.
func find(ctx context.Context, c client.Client, r Request, verdict metav1.ConditionStatus) (*v1alpha1.RolloutGate, error) {
	ref := r.Ref
	if ref.Kind == describe.KindGate {
		g := &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name}}
		if err := Get(ctx, c, g); err != nil {
			return nil, err
		}
		if Decided(g) == verdict {
			return nil, fmt.Errorf("gate/%s is %s already", g.Name, past(r.Verb))
		}
		return g, nil
	}
	list := &v1alpha1.RolloutGateList{}
	if err := c.List(ctx, list, client.InNamespace(ref.Namespace)); err != nil {
		return nil, fmt.Errorf("list RolloutGates: %w", err)
	}
	gates := slices.DeleteFunc(list.Items, func(g v1alpha1.RolloutGate) bool {
		return g.Spec.TargetRef.Kind != ref.Kind || g.Spec.TargetRef.Name != ref.Name || Decided(&g) == verdict || g.DeletionTimestamp != nil
	})
	if len(gates) > 1 { // those that were created in advance, and those that were decided otherwise
		if waiting := slices.DeleteFunc(slices.Clone(gates), func(g v1alpha1.RolloutGate) bool {
			return g.Spec.ReachedAt == nil || Decided(&g) != metav1.ConditionUnknown
		}); len(waiting) > 0 {
			gates = waiting
		}
	}
	switch len(gates) {
	case 0:
		if err := command.Missing(ctx, c, ref); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s has no gate to %s; spillway explain %s -n %s says what it waits for", ref, r.Verb, ref, ref.Namespace)
	case 1:
		return &gates[0], nil
	default:
		return nil, fmt.Errorf("%s has several gates; choose one of %s", ref, gatesText(gates))
	}
}

// targetOf is what rolls out, as a person names it.
func targetOf(g *v1alpha1.RolloutGate) string {
	return strings.ToLower(g.Spec.TargetRef.Kind) + "/" + g.Spec.TargetRef.Name
}

// gatesText lists gates by their names, with their units.
func gatesText(gates []v1alpha1.RolloutGate) string {
	texts := make([]string, len(gates))
	for i := range gates {
		texts[i] = "gate/" + gates[i].Name + " (" + describe.UnitOfGate(&gates[i]) + ")"
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}
