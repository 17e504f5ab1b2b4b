package models

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deployments is the controller of Deployments.
type deployments struct{ *runner }

// Wakes implements [world.Actor].
func (c deployments) Wakes(_, after client.Object) []types.NamespacedName {
	if d, ok := after.(*appsv1.Deployment); ok {
		return []types.NamespacedName{client.ObjectKeyFromObject(d)}
	}
	return c.waitingFor("deployment", after)
}

// waitingFor are the workloads of a kind that wait for config, if it is config that
// has changed.
func (r *runner) waitingFor(kind string, after client.Object) []types.NamespacedName {
	switch after.(type) {
	case *corev1.ConfigMap, *corev1.Secret:
	default:
		return nil
	}
	var keys []types.NamespacedName
	for l := range r.lacking {
		if l.kind == kind {
			keys = append(keys, l.NamespacedName)
		}
	}
	return keys
}

// Act implements [world.Actor].
func (c deployments) Act(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	d, ok := c.Store.Object(&appsv1.Deployment{}, key).(*appsv1.Deployment)
	if !ok || d.DeletionTimestamp != nil {
		return 0, nil
	}
	set, template := c.of(d.UID), fingerprint(&d.Spec.Template)
	minReady := time.Duration(d.Spec.MinReadySeconds) * time.Second
	if err := c.revive(ctx, "deployment", d.Namespace, d.Name, template, &d.Spec.Template, set); err != nil {
		return 0, err
	}
	if err := c.roll(ctx, d, set, template, minReady); err != nil {
		return 0, err
	}
	again, err := c.writeStatus(ctx, d, set, template, minReady)
	if next := set.next(c.Now, minReady); next > 0 && (again == 0 || next < again) {
		again = next
	}
	return again, err
}

// roll makes new replicas and takes old ones away, as far as the strategy lets it.
func (c deployments) roll(ctx context.Context, d *appsv1.Deployment, set *replicaSet, template string, minReady time.Duration) error {
	if d.Spec.Paused {
		return nil
	}
	wanted := max(0, int(*d.Spec.Replicas))
	surge, unavailable := bounds(d, wanted)
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		for ok := true; ok; {
			_, ok = set.removeOld(template, c.Now, minReady)
		}
		if set.stopping(c.Now) > 0 {
			return nil
		}
	}
	for set.of(template) < wanted && len(set.all) < wanted+surge {
		made, err := c.replica(ctx, "deployment", d.Namespace, d.Name, template, &d.Spec.Template)
		if err != nil {
			return err
		}
		set.all, set.progressed = append(set.all, made), c.Now
	}
	c.shrink(set, template, minReady, wanted, unavailable)
	if len(set.all) < wanted+surge && set.of(template) < wanted {
		return c.roll(ctx, d, set, template, minReady)
	}
	return nil
}

// shrink takes old replicas away, as many as may be missing, and new ones that are too
// many.
func (c deployments) shrink(set *replicaSet, template string, minReady time.Duration, wanted, unavailable int) {
	available := int(set.count(func(p replica) bool { return p.isAvailable(c.Now, minReady) }))
	for spare := available - (wanted - unavailable); ; {
		taken, ok := set.takeOld(template, c.Now, minReady, spare > 0)
		if !ok {
			break
		}
		set.progressed = c.Now
		if taken {
			spare--
		}
	}
	for set.of(template) > wanted {
		set.all = set.all[:len(set.all)-1]
	}
}

// takeOld is removeOld that leaves what is available alone unless it may go.
func (r *replicaSet) takeOld(template string, now time.Time, minReady time.Duration, may bool) (available, ok bool) {
	if !may && r.count(func(p replica) bool { return p.template != template && !p.isAvailable(now, minReady) }) == 0 {
		return false, false
	}
	return r.removeOld(template, now, minReady)
}

// writeStatus writes what the controller has seen, and says when its deadline is.
func (c deployments) writeStatus(ctx context.Context, d *appsv1.Deployment, set *replicaSet, template string, minReady time.Duration) (time.Duration, error) {
	isNew := func(p replica) bool { return p.template == template }
	ready := func(p replica) bool { return p.isReady(c.Now) }
	available := set.count(func(p replica) bool { return p.isAvailable(c.Now, minReady) })
	d = d.DeepCopy()
	before := d.Status
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: int32(len(set.all)), UpdatedReplicas: set.count(isNew), //nolint:gosec // a number of replicas
		ReadyReplicas: set.count(ready), AvailableReplicas: available, UnavailableReplicas: max(0, int32(len(set.all))-available), //nolint:gosec // as above
	}
	if before.AvailableReplicas < available || before.ObservedGeneration != d.Generation {
		set.progressed = c.Now
	}
	done := d.Status.UpdatedReplicas == *d.Spec.Replicas && available == *d.Spec.Replicas && d.Status.Replicas == *d.Spec.Replicas
	_, unavailable := bounds(d, int(*d.Spec.Replicas))
	deadline := set.progressed.Add(time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second)
	d.Status.Conditions = []appsv1.DeploymentCondition{
		c.condition(before.Conditions, appsv1.DeploymentAvailable, int(available) >= int(*d.Spec.Replicas)-unavailable, "MinimumReplicasAvailable", "MinimumReplicasUnavailable"),
		c.progressing(d, before.Conditions, done, deadline),
	}
	again := time.Duration(0)
	if !done {
		again = max(0, deadline.Sub(c.Now))
	}
	return again, c.WriteStatus(ctx, d)
}

// bounds are how many replicas there may be too many, and how many may be missing.
func bounds(d *appsv1.Deployment, wanted int) (surge, unavailable int) {
	rolling := d.Spec.Strategy.RollingUpdate
	if rolling == nil {
		return 0, wanted
	}
	surge = scaled(rolling.MaxSurge, wanted, true)
	unavailable = scaled(rolling.MaxUnavailable, wanted, false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

func scaled(value *intstr.IntOrString, of int, up bool) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(value, intstr.FromInt32(0)), of, up)
	if err != nil {
		return 0
	}
	return n
}

// progressing is judged while replicas of another template exist. One that was done
// stays so, whatever becomes of its Pods.
func (c deployments) progressing(d *appsv1.Deployment, before []appsv1.DeploymentCondition, done bool, deadline time.Time) appsv1.DeploymentCondition {
	wasDone := slices.ContainsFunc(before, func(old appsv1.DeploymentCondition) bool {
		return old.Type == appsv1.DeploymentProgressing && old.Reason == rolledOut
	})
	switch {
	case done || wasDone && d.Status.Replicas == d.Status.UpdatedReplicas:
		return c.condition(before, appsv1.DeploymentProgressing, true, rolledOut, "")
	case !c.Now.Before(deadline):
		return c.condition(before, appsv1.DeploymentProgressing, false, "", "ProgressDeadlineExceeded")
	default:
		return c.condition(before, appsv1.DeploymentProgressing, true, "ReplicaSetUpdated", "")
	}
}

// rolledOut is the reason of a Deployment that has got where it should be.
const rolledOut = "NewReplicaSetAvailable"

// condition keeps since when it is as it is.
func (c deployments) condition(before []appsv1.DeploymentCondition, kind appsv1.DeploymentConditionType, is bool, yes, no string) appsv1.DeploymentCondition {
	made := appsv1.DeploymentCondition{Type: kind, Status: corev1.ConditionTrue, Reason: yes, LastUpdateTime: metav1.NewTime(c.Now), LastTransitionTime: metav1.NewTime(c.Now)}
	if !is {
		made.Status, made.Reason = corev1.ConditionFalse, no
	}
	for _, old := range before {
		if old.Type == kind && old.Status == made.Status && old.Reason == made.Reason {
			return old
		}
	}
	return made
}
