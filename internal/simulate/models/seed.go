package models

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/simulate/record"
)

// Seed puts into the world what there is in a cluster.
func (m *Models) Seed(present []client.Object) error {
	pods := runningIn(present)
	for _, obj := range present {
		if isNumbered(obj) {
			continue
		}
		if err := m.world.Store.Seed(obj); err != nil {
			return fmt.Errorf("take over %s: %w", obj.GetName(), err)
		}
		switch o := obj.(type) {
		case *appsv1.StatefulSet:
			m.seedSet(o)
		case *appsv1.Deployment:
			replicas, current := o.Status.Replicas, o.Status.ObservedGeneration == o.Generation
			m.run.of(o.UID).progressed = m.progressedSince(o)
			m.seedReplicas(pods, record.KeyOf("deployment", o.Namespace, o.Name), o, &o.Spec.Template, numbers{replicas, o.Status.UpdatedReplicas, o.Status.ReadyReplicas}, current)
		case *appsv1.DaemonSet:
			scheduled, current := o.Status.CurrentNumberScheduled, o.Status.ObservedGeneration == o.Generation
			m.seedReplicas(pods, record.KeyOf("daemonset", o.Namespace, o.Name), o, &o.Spec.Template, numbers{scheduled, o.Status.UpdatedNumberScheduled, o.Status.NumberReady}, current)
			m.run.of(o.UID).nodes = new(int(o.Status.DesiredNumberScheduled))
		}
	}
	m.remember(pods)
	return nil
}

// seedSet knows the revisions of a StatefulSet by the names that they have. What its
// older ones were made from matters only to Pods that come back at them.
func (m *Models) seedSet(o *appsv1.StatefulSet) {
	sets := m.sets
	if o.Status.CurrentRevision != "" {
		sets.templates[o.Status.CurrentRevision] = o.Spec.Template
	}
	if o.Status.ObservedGeneration == o.Generation && o.Status.UpdateRevision != "" {
		stored, _ := m.world.Store.Object(o, client.ObjectKeyFromObject(o)).(*appsv1.StatefulSet)
		sets.templates[o.Status.UpdateRevision] = o.Spec.Template
		sets.seen[seenTemplate{o.UID, fingerprint(&stored.Spec.Template)}] = o.Status.UpdateRevision
	}
}

// numbers are of a status: how many there are, are updated, are ready.
type numbers struct{ all, updated, ready int32 }

// seedReplicas makes replicas of Pods, and of a status where no Pods were seen: there
// old ones are taken for ready before new ones are.
func (m *Models) seedReplicas(pods running, of record.Key, o client.Object, template *corev1.PodTemplateSpec, n numbers, current bool) {
	set := m.run.of(o.GetUID())
	if !current {
		n.updated = 0
	}
	if seen := pods[of]; len(seen) > 0 {
		m.run.takeOver(of, o.GetUID(), seen, n.updated, fingerprint(template))
		return
	}
	for i := range n.all {
		r := replica{template: "former", stops: Stopping(&template.Spec, m.Stop)}
		if i >= n.all-n.updated {
			r.template = fingerprint(template)
		}
		if i < n.ready {
			r.readyAt = m.world.Now.Add(-24 * time.Hour)
		} else if r.template != "former" {
			r.waits, r.began = true, m.world.Now
		}
		set.all = append(set.all, r)
	}
}

// progressedSince is when a Deployment got on last. One of which it is said that it is
// too late has made no progress for as long as it may.
func (m *Models) progressedSince(d *appsv1.Deployment) time.Time {
	for i := range d.Status.Conditions {
		c := &d.Status.Conditions[i]
		switch {
		case c.Type != appsv1.DeploymentProgressing:
		case c.Status == corev1.ConditionFalse && d.Spec.ProgressDeadlineSeconds != nil:
			return c.LastUpdateTime.Add(-time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second)
		default:
			return c.LastUpdateTime.Time
		}
	}
	return m.world.Now
}
