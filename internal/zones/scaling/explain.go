package scaling

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Look says what the replicas of a group wait for, by the same code that the manager
// runs, with the caller's own permissions and nothing but reads. What Pods have said to
// the manager it cannot know: of a delayed downscale it says what is to come about.
func Look(ctx context.Context, c client.Client, o Options, namespace, group string) (Plan, error) {
	look := observer{options: o, cached: c, live: c, scales: c, mapper: c.RESTMapper()}
	s, err := look.observe(ctx, types.NamespacedName{Namespace: namespace, Name: group}, newMemory())
	if err != nil {
		return Plan{}, err
	}
	return Decide(s.Observed), nil
}
