package forecast

import (
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/estimate"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// durations are how long Pods took until they were ready, Jobs until they were complete, and
// clusters until a sync had succeeded, by "statefulset/x", "job/x" and
// "cluster/x".
type durations map[string][]time.Duration

// pick is which of several times counts.
type pick int

const (
	shortest pick = iota
	expected
	longest
)

// durationsIn are those that the objects of a cluster tell.
func durationsIn(present []client.Object) durations {
	seen := durations{}
	for _, obj := range present {
		switch o := obj.(type) {
		case *corev1.Pod:
			seen.pod(o)
		case *batchv1.Job:
			if o.Status.StartTime != nil && o.Status.CompletionTime != nil {
				seen.add(record.Reference(record.KindJob, o.Name), o.Status.CompletionTime.Sub(o.Status.StartTime.Time))
			}
		case *fleetv1.ProxyAssemblage:
			seen.syncs(o.Name, &o.Status)
		case *fleetv1.RemoteAssemblage:
			seen.syncs(o.Name, &o.Status)
		}
	}
	return seen
}

func (d durations) add(of string, took time.Duration) {
	if took >= 0 {
		d[of] = append(d[of], took)
	}
}

// pod adds the time of a Pod. When one that was restarted was ready first is not known.
func (d durations) pod(pod *corev1.Pod) {
	restarted := slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.RestartCount > 0 })
	owner := metav1.GetControllerOfNoCopy(pod)
	if restarted || owner == nil {
		return
	}
	of := record.Reference(owner.Kind, owner.Name)
	if owner.Kind == "ReplicaSet" {
		of = record.Reference(workload.Deployment, strings.TrimSuffix(owner.Name, "-"+pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]))
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			d.add(of, c.LastTransitionTime.Sub(pod.CreationTimestamp.Time))
		}
	}
}

// syncs adds the times of a cluster.
func (d durations) syncs(name string, status *fleetv1.AssemblageStatus) {
	for i := range status.Syncs {
		s := &status.Syncs[i]
		if s.State == fleetv1.StateSucceeded && s.LastTransitionTime != nil && s.AssignedAt != nil {
			d.add(record.Reference("cluster", name), s.LastTransitionTime.Sub(s.AssignedAt.Time))
		}
	}
}

// readiness are the times that were seen, or were given where none was seen or what was given
// names something.
func (d durations) readiness(given world.Readiness, p pick) world.Readiness {
	r := world.Readiness{Default: given.Default, Of: map[string]time.Duration{}, OfRevision: given.OfRevision}
	for of, times := range d {
		r.Of[of] = estimateOf(times, p)
	}
	maps.Copy(r.Of, given.Of)
	return r
}

// estimateOf is one of the times that something may take.
func estimateOf(times []time.Duration, p pick) time.Duration {
	e := estimate.Of(times)
	return [...]time.Duration{shortest: e.Shortest, expected: e.Expected, longest: e.Longest}[p]
}
