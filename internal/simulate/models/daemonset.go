package models

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// daemonSets is the controller of DaemonSets, on some number of nodes that are all
// fit for them.
type daemonSets struct {
	*runner

	nodes int
}

// Wakes implements [world.Actor].
func (c daemonSets) Wakes(_, after client.Object) []types.NamespacedName {
	if d, ok := after.(*appsv1.DaemonSet); ok {
		return []types.NamespacedName{client.ObjectKeyFromObject(d)}
	}
	return c.waitingFor("daemonset", after)
}

// Act implements [world.Actor].
func (c daemonSets) Act(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	d, ok := c.Store.Object(&appsv1.DaemonSet{}, key).(*appsv1.DaemonSet)
	if !ok || d.DeletionTimestamp != nil {
		return 0, nil
	}
	set, template := c.of(d.UID), fingerprint(&d.Spec.Template)
	if set.nodes != nil {
		c.nodes = *set.nodes
	}
	minReady := time.Duration(d.Spec.MinReadySeconds) * time.Second
	if err := c.revive(ctx, "daemonset", d.Namespace, d.Name, template, &d.Spec.Template, set); err != nil {
		return 0, err
	}
	c.takeOld(d, set, template, minReady)
	for len(set.all)+set.stopping(c.Now) < c.nodes {
		made, err := c.replica(ctx, "daemonset", d.Namespace, d.Name, template, &d.Spec.Template)
		if err != nil {
			return 0, err
		}
		set.all = append(set.all, made)
	}
	return set.next(c.Now, minReady), c.writeStatus(ctx, d, set, template, minReady)
}

// takeOld takes Pods of an old template away, as many as may be unavailable.
func (c daemonSets) takeOld(d *appsv1.DaemonSet, set *replicaSet, template string, minReady time.Duration) {
	if d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		return
	}
	rolling := ptr.Deref(d.Spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
	budget := max(1, scaled(rolling.MaxUnavailable, c.nodes, true))
	if surge := scaled(rolling.MaxSurge, c.nodes, true); surge > 0 {
		budget = surge // the time that it takes is the same, but that nothing has to go before
		defer func() { set.leaving = nil }()
	}
	for {
		unavailable := set.count(func(p replica) bool { return !p.isAvailable(c.Now, minReady) }) + int32(c.nodes-len(set.all)) //nolint:gosec // a number of nodes
		if _, ok := set.takeOld(template, c.Now, minReady, int(unavailable) < budget); !ok {
			return
		}
	}
}

func (c daemonSets) writeStatus(ctx context.Context, d *appsv1.DaemonSet, set *replicaSet, template string, minReady time.Duration) error {
	d = d.DeepCopy()
	nodes := int32(c.nodes) //nolint:gosec // a number of nodes
	available := set.count(func(p replica) bool { return p.isAvailable(c.Now, minReady) })
	d.Status = appsv1.DaemonSetStatus{
		ObservedGeneration: d.Generation, DesiredNumberScheduled: nodes, CurrentNumberScheduled: nodes,
		UpdatedNumberScheduled: set.count(func(p replica) bool { return p.template == template }),
		NumberReady:            set.count(func(p replica) bool { return p.isReady(c.Now) }),
		NumberAvailable:        available, NumberUnavailable: nodes - available,
	}
	return c.WriteStatus(ctx, d)
}
