package simulate

import (
	"cmp"
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/zones/scaling"
)

// Unplayed is what the manager would do, and the simulation does not.
type Unplayed struct {
	Object    string `json:"object"`
	Namespace string `json:"namespace"`
	// Sentence says what would be done, as the ring says it, and Action how to see it.
	Sentence string `json:"sentence"`
	Action   string `json:"action"`
}

// unplayed is what scaling would do next, by the code that decides it in the manager. It
// is not done here: a downscale is prepared by Pods, and guards may refuse it.
func (s *simulation) unplayed(ctx context.Context) ([]Unplayed, error) {
	groups := map[types.NamespacedName]bool{}
	for _, obj := range s.Store.Objects(&appsv1.StatefulSet{}, "") {
		if settings := scaling.SettingsOf(obj.GetLabels(), obj.GetAnnotations()); settings.Leader != "" || settings.Mirror != nil {
			groups[types.NamespacedName{Namespace: obj.GetNamespace(), Name: s.GroupOf(obj)}] = true
		}
	}
	var all []Unplayed
	for key := range groups {
		if key.Name == "" {
			continue
		}
		plan, err := scaling.Look(ctx, s.Store, scaling.Options{Now: s.Clock}, key.Namespace, key.Name)
		if err != nil {
			return nil, err
		}
		for _, would := range plan.Explain() {
			all = append(all, Unplayed{
				Object: record.Reference("RolloutGroup", key.Name), Namespace: key.Namespace,
				Sentence: would + ", which is not simulated: replicas that follow others stay as they are here",
				Action:   "apply the change, and see what they wait for: spillway explain rolloutgroup/" + key.Name,
			})
		}
	}
	slices.SortFunc(all, func(a, b Unplayed) int {
		return cmp.Or(strings.Compare(a.Namespace+" "+a.Object, b.Namespace+" "+b.Object), strings.Compare(a.Sentence, b.Sentence))
	})
	return all, nil
}
