package budget

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
)

// Bound is what a budget asks of a rollout, which goes one zone at a time anyway.
type Bound struct {
	// MaxUnavailable is how many Pods of the zone may be down, 0 for no bound. A budget
	// of zero forbids evictions and no rollout, as with rollout-operator; so does one
	// by partitions, of which a rollout of one zone takes one Pod each.
	MaxUnavailable int
	// Soak is how long a zone must be ready before the next one goes.
	Soak time.Duration
}

// BoundOf is the bound of a zone, by the budget that is for its Pods. It reads nothing
// but what it is given, so it costs a rollout no call.
func BoundOf(budgets []zonesv1.ZoneAwarePodDisruptionBudget, set *appsv1.StatefulSet) (Bound, error) {
	object, err := Matching(budgets, set.Spec.Template.Labels)
	if err != nil || object == nil {
		return Bound{}, err
	}
	b, err := Of(object)
	if err != nil {
		return Bound{}, err
	}
	if b.partition != nil {
		return Bound{Soak: b.Delay}, nil
	}
	return Bound{MaxUnavailable: b.Unavailable(set)}, nil
}
