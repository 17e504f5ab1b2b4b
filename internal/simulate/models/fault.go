package models

import (
	"fmt"
	"io"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// Afflict keeps a unit from being ready until it is relieved, or its Pod is another one: a Pod, a
// cluster, or a workload whose Pods are modelled by numbers. Of such a workload those Pods are slow
// that are not ready yet, and one crashes that is.
func (m *Models) Afflict(of record.Key, by world.Fault) {
	set, obj := m.numbered(of)
	if set == nil {
		m.world.Faults[of] = by
		m.wake(of)
		return
	}
	current := fingerprint(workload.TemplateOf(obj))
	for i := range set.all {
		p := &set.all[i]
		if p.template != current || p.isReady(m.world.Now) != (by == world.Crashing) {
			continue
		}
		if p.fault, p.readyAt = by, (time.Time{}); by == world.Crashing {
			break
		}
	}
	m.world.Wake(obj)
}

// Relieve ends what keeps a unit from being ready: it is ready now.
func (m *Models) Relieve(of record.Key) {
	set, obj := m.numbered(of)
	if set == nil {
		delete(m.world.Faults, of)
		m.wake(of)
		return
	}
	for i := range set.all {
		if set.all[i].fault != "" {
			set.all[i].fault, set.all[i].readyAt = "", m.world.Now
		}
	}
	m.world.Wake(obj)
}

// Lose takes a Pod away as if its node had gone: a Pod that is named, or one of the newest of a
// workload.
func (m *Models) Lose(of record.Key) {
	set, obj := m.numbered(of)
	if set != nil {
		i := slices.IndexFunc(set.all, func(p replica) bool {
			return p.template == fingerprint(workload.TemplateOf(obj)) && p.isReady(m.world.Now)
		})
		if i >= 0 {
			set.all = slices.Delete(set.all, i, i+1)
			m.world.Wake(obj)
		}
		return
	}
	if pod, ok := m.world.Store.Object(&corev1.Pod{}, nameOf(of)).(*corev1.Pod); ok {
		delete(m.world.Faults, of)
		m.world.Store.Remove(pod)
	}
}

// numbered are the Pods of a workload that are modelled by numbers, nil of anything else.
func (m *Models) numbered(of record.Key) (*replicaSet, client.Object) {
	var obj client.Object
	switch of.Kind {
	case "deployment":
		obj = m.world.Store.Object(&appsv1.Deployment{}, nameOf(of))
	case "daemonset":
		obj = m.world.Store.Object(&appsv1.DaemonSet{}, nameOf(of))
	}
	if obj == nil {
		return nil, nil
	}
	return m.run.sets[obj.GetUID()], obj
}

// wake has the actors look at a Pod, or at what a cluster is assigned.
func (m *Models) wake(of record.Key) {
	for _, kind := range append(fleetKinds(), &corev1.Pod{}) {
		if obj := m.world.Store.Object(kind, nameOf(of)); obj != nil {
			m.world.Wake(obj)
		}
	}
}

func nameOf(of record.Key) types.NamespacedName {
	return types.NamespacedName{Namespace: of.Namespace, Name: of.Name}
}

// WriteState writes the Pods that are modelled by numbers: which can be told apart, and when
// something becomes of them.
func (m *Models) WriteState(to io.Writer) {
	for _, kind := range []client.Object{&appsv1.Deployment{}, &appsv1.DaemonSet{}} {
		for _, obj := range m.world.Store.Objects(kind, "") {
			set := m.run.sets[obj.GetUID()]
			if set == nil {
				continue
			}
			all := make([]string, 0, len(set.all)+len(set.leaving))
			for _, p := range set.all {
				all = append(all, fmt.Sprint(p.template, p.waits, p.fault, p.readyAt.IsZero(), max(0, p.readyAt.Sub(m.world.Now))))
			}
			for _, at := range set.leaving {
				all = append(all, max(0, at.Sub(m.world.Now)).String())
			}
			slices.Sort(all)
			_, _ = fmt.Fprintln(to, obj.GetNamespace(), obj.GetName(), all)
		}
	}
}
