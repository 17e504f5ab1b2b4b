package change

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/reasons"
)

// Decided is the verdict of a gate as it is.
func Decided(g *v1alpha1.RolloutGate) metav1.ConditionStatus {
	if c := apimeta.FindStatusCondition(g.Status.Conditions, v1alpha1.GatePassed); c != nil {
		return c.Status
	}
	return metav1.ConditionUnknown
}

// SetVerdict sets a person's verdict of a gate, true or false.
func SetVerdict(g *v1alpha1.RolloutGate, verdict metav1.ConditionStatus, who Author) {
	reason := reasons.Approved
	if verdict == metav1.ConditionFalse {
		reason = reasons.Refused
	}
	apimeta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{
		Type: v1alpha1.GatePassed, Status: verdict, Reason: string(reason), Message: who.words(), LastTransitionTime: who.At,
	})
}

// WriteVerdict writes the verdict of a gate, if no other was given since it was read.
func WriteVerdict(ctx context.Context, c client.Client, gate, before client.Object) error {
	err := c.Status().Patch(ctx, gate, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(FieldOwner))
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("you may not decide gates; it takes the permission to patch rolloutgates/status: %w", err)
	}
	if err != nil {
		return fmt.Errorf("change rolloutgate/%s: %w", gate.GetName(), err)
	}
	return nil
}

// Decide writes a person's verdict of a gate, true or false, if no other was given since it
// was read.
func Decide(ctx context.Context, c client.Client, g *v1alpha1.RolloutGate, verdict metav1.ConditionStatus, who Author) error {
	before := g.DeepCopy()
	SetVerdict(g, verdict, who)
	return WriteVerdict(ctx, c, g, before)
}

// words are what is shown of a verdict.
func (a *Author) words() string {
	switch {
	case a.By == "":
		return a.Reason
	case a.Reason == "":
		return "by " + a.By
	default:
		return a.By + " says: " + a.Reason
	}
}
