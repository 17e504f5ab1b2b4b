package models

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// autoscalers are HorizontalPodAutoscalers without any load: they keep workloads within
// their bounds, so that one which leaves its replicas to them has the fewest.
type autoscalers struct {
	*world.World

	// all are those that there are, by name, and what they scale.
	all map[types.NamespacedName]scaling
}

// scaling is what an autoscaler keeps within which bounds.
type scaling struct {
	of          record.Key
	least, most int32
}

// Wakes implements [world.Actor].
func (a autoscalers) Wakes(before, after client.Object) []types.NamespacedName {
	if _, ok := scalingOf(before); ok && after == nil {
		delete(a.all, client.ObjectKeyFromObject(before))
		return nil
	}
	if s, ok := scalingOf(after); ok {
		key := client.ObjectKeyFromObject(after)
		a.all[key] = s
		return []types.NamespacedName{key}
	}
	var keys []types.NamespacedName
	for key, s := range a.all {
		if after != nil && s.of == record.KeyOf(scaledKind(after), after.GetNamespace(), after.GetName()) {
			keys = append(keys, key)
		}
	}
	return keys
}

// scaledKind is the kind of what has replicas, empty for anything else.
func scaledKind(obj client.Object) string {
	if _, ok := obj.(*zonesv1.ReplicaTemplate); ok {
		return kindReplicaTemplate
	}
	return record.ProgressOf(obj).Kind
}

const kindReplicaTemplate = "ReplicaTemplate"

// scalingOf reads an autoscaler, ok is false for anything else. There are none but of v2:
// those of v1 were converted when they were applied.
func scalingOf(obj client.Object) (s scaling, ok bool) {
	o, ok := obj.(*autoscalingv2.HorizontalPodAutoscaler)
	if !ok {
		return s, false
	}
	least := ptr.Deref(o.Spec.MinReplicas, 1)
	return scaling{
		of:    record.KeyOf(o.Spec.ScaleTargetRef.Kind, o.Namespace, o.Spec.ScaleTargetRef.Name),
		least: least, most: max(o.Spec.MaxReplicas, least),
	}, true
}

// Act does nothing with what has no replicas: that is how scaling is turned off.
func (a autoscalers) Act(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	s, ok := a.all[key]
	name := types.NamespacedName{Namespace: s.of.Namespace, Name: s.of.Name}
	switch {
	case !ok:
		return 0, nil
	case s.of.Kind == workload.Deployment:
		if d, ok := a.Store.Object(&appsv1.Deployment{}, name).(*appsv1.Deployment); ok {
			d = d.DeepCopy()
			return 0, a.scale(ctx, s, d, d.Spec.Replicas)
		}
	case s.of.Kind == workload.StatefulSet:
		if set, ok := a.Store.Object(&appsv1.StatefulSet{}, name).(*appsv1.StatefulSet); ok {
			set = set.DeepCopy()
			return 0, a.scale(ctx, s, set, set.Spec.Replicas)
		}
	case s.of.Kind == kindReplicaTemplate:
		if t, ok := a.Store.Object(&zonesv1.ReplicaTemplate{}, name).(*zonesv1.ReplicaTemplate); ok {
			t = t.DeepCopy()
			return 0, a.scale(ctx, s, t, t.Spec.Replicas)
		}
	}
	return 0, nil
}

// autoscaler is who writes replicas, so that a manifest without any leaves them.
const autoscaler = "horizontal-pod-autoscaler"

// scale writes the replicas of a copy of what is scaled.
func (a autoscalers) scale(ctx context.Context, s scaling, target client.Object, replicas *int32) error {
	wanted := min(max(*replicas, s.least), s.most)
	if *replicas == 0 || *replicas == wanted {
		return nil
	}
	*replicas = wanted
	if err := world.Gone(a.Store.Update(ctx, target, client.FieldOwner(autoscaler))); err != nil {
		return fmt.Errorf("scale %s %s: %w", s.of.Kind, s.of.Name, err)
	}
	return nil
}
