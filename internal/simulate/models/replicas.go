package models

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// replica stands for a Pod of a Deployment or a DaemonSet. Only the config ring reads those
// Pods, through [Models.Pods], so they are not kept in the API.
type replica struct {
	// template is the fingerprint of what it was made from.
	template string
	// readyAt is when it is ready; zero if that is never.
	readyAt time.Time
	// waits is true of one that could not start yet, or of which is not known yet
	// when it is ready; began is since when it runs, if it does.
	waits bool
	began time.Time
	// stops is how long it takes until it is gone.
	stops time.Duration
	// fault keeps it from being ready.
	fault world.Fault
}

// replicaSet are those of one workload.
type replicaSet struct {
	all []replica
	// leaving is when those are gone that were taken away.
	leaving []time.Time
	// progressed is when one was made, became available or went last, since there was
	// anything to do.
	progressed time.Time
	// nodes is on how many nodes a DaemonSet runs that was seen in a cluster, nil of any
	// other.
	nodes *int
}

func (r *replicaSet) of(template string) int {
	return len(slices.DeleteFunc(slices.Clone(r.all), func(p replica) bool { return p.template != template }))
}

func (p replica) isReady(now time.Time) bool { return !p.readyAt.IsZero() && !p.readyAt.After(now) }

func (r *replicaSet) count(is func(replica) bool) int32 {
	n := int32(0)
	for _, p := range r.all {
		if is(p) {
			n++
		}
	}
	return n
}

// removeOld takes one replica away that is not of a template: one that is not
// available before one that is. It says whether that was available.
func (r *replicaSet) removeOld(template string, now time.Time, minReady time.Duration) (available, ok bool) {
	for _, wanted := range []bool{false, true} {
		for i, p := range r.all {
			if p.template != template && p.isAvailable(now, minReady) == wanted {
				r.all = slices.Delete(r.all, i, i+1)
				if !p.waits {
					r.leaving = append(r.leaving, now.Add(p.stops))
				}
				return wanted, true
			}
		}
	}
	return false, false
}

func (p replica) isAvailable(now time.Time, minReady time.Duration) bool {
	return !p.readyAt.IsZero() && !p.readyAt.Add(minReady).After(now)
}

// stopping is how many are terminating.
func (r *replicaSet) stopping(now time.Time) int {
	r.leaving = slices.DeleteFunc(r.leaving, func(gone time.Time) bool { return !gone.After(now) })
	return len(r.leaving)
}

// next is how long it takes until the next replica is ready, available or gone, zero if none will be.
func (r *replicaSet) next(now time.Time, minReady time.Duration) time.Duration {
	moments := slices.Clone(r.leaving)
	for _, p := range r.all {
		if !p.readyAt.IsZero() {
			moments = append(moments, p.readyAt, p.readyAt.Add(minReady))
		}
	}
	next := time.Duration(0)
	for _, at := range moments {
		if rest := at.Sub(now); rest > 0 && (next == 0 || rest < next) {
			next = rest
		}
	}
	return next
}

// runner makes replicas.
type runner struct {
	*world.World

	readiness world.Readiness
	stop      *time.Duration
	sets      map[types.UID]*replicaSet
	// lacking are the workloads that wait for config.
	lacking map[lacking]bool
}

// lacking is a workload that waits for config.
type lacking struct {
	kind string
	types.NamespacedName
}

func (r *runner) of(uid types.UID) *replicaSet {
	if r.sets[uid] == nil {
		r.sets[uid] = &replicaSet{progressed: r.Now}
	}
	return r.sets[uid]
}

// revive lets replicas start that lacked config, once it exists, and says of those
// that a cluster has begun with when they are ready.
func (r *runner) revive(ctx context.Context, kind, namespace, name, template string, pod *corev1.PodTemplateSpec, set *replicaSet) error {
	if !slices.ContainsFunc(set.all, func(p replica) bool { return p.waits && p.template == template }) {
		return nil
	}
	made, err := r.replica(ctx, kind, namespace, name, template, pod)
	if err != nil {
		return err
	}
	for i := range set.all {
		if p := &set.all[i]; p.waits && p.template == template {
			began := p.began
			*p = made
			if !made.readyAt.IsZero() && !began.IsZero() {
				p.readyAt = made.readyAt.Add(began.Sub(r.Now))
			}
		}
	}
	return nil
}

// replica makes one of a workload that is ready after its time, or never if it
// lacks config.
func (r *runner) replica(ctx context.Context, kind, namespace, name, template string, pod *corev1.PodTemplateSpec) (replica, error) {
	ready := r.ReadyIn(r.readiness, kind, name, atTemplate(pod))
	lacks, err := content.Lacks(ctx, r.Store, namespace, &pod.Spec)
	delete(r.lacking, lacking{kind, types.NamespacedName{Namespace: namespace, Name: name}})
	if len(lacks) > 0 {
		r.lacking[lacking{kind, types.NamespacedName{Namespace: namespace, Name: name}}] = true
	}
	made := replica{template: template, waits: len(lacks) > 0, stops: Stopping(&pod.Spec, r.stop)}
	if err != nil || made.waits || ready == world.Never || r.IsBroken(kind, namespace, name) {
		return made, err
	}
	made.readyAt = r.Now.Add(ready)
	return made, nil
}
