package testenv

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Scale does as an autoscaler does: it reads the Scale of an object and writes it back with other replicas.
func Scale(ctx context.Context, c client.Client, obj client.Object, replicas int32) error {
	scale := &autoscalingv1.Scale{}
	if err := c.SubResource("scale").Get(ctx, obj, scale); err != nil {
		return fmt.Errorf("read the scale: %w", err)
	}
	scale.Spec.Replicas = replicas
	if err := c.SubResource("scale").Update(ctx, obj, client.WithSubResourceBody(scale)); err != nil {
		return fmt.Errorf("write the scale: %w", err)
	}
	return nil
}
