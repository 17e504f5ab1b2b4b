package simulate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/gates"
	"github.com/spillway-dev/spillway/internal/reasons"
)

// gateResults are what may become of a gate, as users write it.
var gateResults = map[string]v1alpha1.GateResult{
	"pass": v1alpha1.GateSuccess, "fail": v1alpha1.GateFailure, "no-data": v1alpha1.GateNoData,
}

// ParseGate reads "error-rate=fail".
func ParseGate(text string) (name string, result v1alpha1.GateResult, err error) {
	name, value, _ := strings.Cut(text, "=")
	result, known := gateResults[value]
	if name == "" || !known {
		return "", "", fmt.Errorf("%q cannot be read; write NAME=pass, NAME=fail or NAME=no-data", text)
	}
	return name, result, nil
}

// Approved is that a user approves a gate, whether it is measured or not.
const Approved v1alpha1.GateResult = "Approved"

// decider decides gates as supposed, once they are reached: those that are measured by the
// code of the manager, with a source that always answers the same, and others immediately.
type decider struct{ *simulation }

// Wakes implements [world.Actor].
func (d *decider) Wakes(_, after client.Object) []types.NamespacedName {
	if g, ok := after.(*v1alpha1.RolloutGate); ok && d.resultOf(g.Spec.Gate) != "" {
		return []types.NamespacedName{client.ObjectKeyFromObject(g)}
	}
	return nil
}

// Act implements [world.Actor].
func (d *decider) Act(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	gate, ok := d.Store.Object(&v1alpha1.RolloutGate{}, key).(*v1alpha1.RolloutGate)
	if !ok || !d.Begun {
		return 0, nil
	}
	name := gate.Spec.Gate
	d.decided[name] = true
	result := d.resultOf(name)
	template, measured := d.Store.Object(&v1alpha1.GateTemplate{}, types.NamespacedName{Namespace: key.Namespace, Name: name}).(*v1alpha1.GateTemplate)
	if !measured || template.Spec.Manual != nil || result == Approved {
		return 0, d.byHand(ctx, gate, result)
	}
	after, wake := gates.Play(gate, template, result, d.Now)
	if after != nil {
		return 0, d.WriteStatus(ctx, after) // which wakes it again
	}
	if wake.IsZero() {
		return 0, nil
	}
	return wake.Sub(d.Now), nil
}

// resultOf is what becomes of a gate, empty if it waits.
func (d *decider) resultOf(name string) v1alpha1.GateResult {
	return cmp.Or(d.options.Gates[name], d.options.OtherGates)
}

// byHand decides a gate as a user does.
func (d *decider) byHand(ctx context.Context, gate *v1alpha1.RolloutGate, result v1alpha1.GateResult) error {
	verdict := map[v1alpha1.GateResult]metav1.Condition{
		Approved:             {Status: metav1.ConditionTrue, Reason: string(reasons.Approved)},
		v1alpha1.GateSuccess: {Status: metav1.ConditionTrue, Reason: string(reasons.Approved)},
		v1alpha1.GateFailure: {Status: metav1.ConditionFalse, Reason: string(reasons.Refused), Message: "supposed"},
	}[result]
	if c := apimeta.FindStatusCondition(gate.Status.Conditions, v1alpha1.GatePassed); verdict.Status == "" || c != nil && c.Status != metav1.ConditionUnknown {
		return nil
	}
	verdict.Type, verdict.LastTransitionTime = v1alpha1.GatePassed, metav1.NewTime(d.Now)
	after := gate.DeepCopy()
	apimeta.SetStatusCondition(&after.Status.Conditions, verdict)
	return d.WriteStatus(ctx, after)
}

// unmetGates are the names of gates that were supposed, and that no rollout has reached.
func (s *simulation) unmetGates() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.options.Gates)), func(name string) bool { return s.decided[name] })
}
