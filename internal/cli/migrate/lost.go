package migrate

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// lost is what the manager keeps from happening, and the former controller would do.
func (m *migration) lost(ctx context.Context) (points []point, err error) {
	objects, err := objectsOf(ctx, m.client, kinds())
	if err != nil {
		return nil, err
	}
	for _, u := range objects {
		if vocabulary.Paused.Get(u.GetAnnotations()) == "true" {
			points = append(points, point{"paused", strings.ToLower(u.GetKind()) + "/" + u.GetName() + " in namespace " + u.GetNamespace(), "is paused, which the former controller does not know", "resume it, or accept that it is rolled"})
		}
	}
	records := &v1alpha1.ConfigRolloutList{}
	err = m.client.List(ctx, records)
	if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return points, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list ConfigRollouts: %w", err)
	}
	for i := range records.Items {
		r := &records.Items[i]
		switch {
		case r.Failed > 0:
			points = append(points, point{"failed", "configrollout/" + r.Name + " in namespace " + r.Namespace, "stops a content with which a workload has failed", "correct the config, or accept that the former controller rolls it everywhere"})
		case r.Rollout != nil && r.Rollout.FinishedAt == nil:
			points = append(points, point{"moving", "configrollout/" + r.Name + " in namespace " + r.Namespace, "is not complete", "wait until it is, or accept that the former controller rolls the rest at the same time"})
		}
	}
	return points, nil
}
