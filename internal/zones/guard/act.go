package guard

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/zones/lock"
)

// actor makes the writes, each with the resourceVersion that it was decided from.
type actor struct {
	writer client.StatusClient
	keeper lock.Keeper
}

// recordEviction writes the status of a budget, if no client has written it since it was
// read; so of evictions that are decided at the same time one is decided again.
func (a actor) recordEviction(ctx context.Context, budget *zonesv1.ZoneAwarePodDisruptionBudget) error {
	err := a.writer.Status().Update(ctx, budget, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency)
	if err != nil {
		return fmt.Errorf("write the status of ZoneAwarePodDisruptionBudget %s: %w", budget.Name, err)
	}
	return nil
}
