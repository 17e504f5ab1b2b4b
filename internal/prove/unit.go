package prove

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/simulate/models"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/zones/replica"
)

// Unit is something that a rollout updates on its own: a Pod of a group, any other workload, or a
// module on a cluster.
type Unit struct {
	record.Key

	// Rollout is what updates it, as commands take it: "rolloutgroup/ingester". Part is its zone or
	// module, by which units differ that are not alike.
	Rollout, Part string
	// Revision identifies what it has.
	Revision string
	// Ready reports whether it serves, with what it has.
	Ready bool
	// Labels are those of the object.
	Labels map[string]string
	// pod is the Pod by which a StatefulSet of no group fails.
	pod string
}

// struck returns what a failure of the unit keeps from being ready.
func (u *Unit) struck() record.Key {
	switch {
	case u.pod != "":
		return record.KeyOf("pod", u.Namespace, u.pod)
	case u.Kind == clusterKind:
		return record.KeyOf(clusterKind, u.Namespace, u.Name)
	}
	return u.Key
}

// id identifies a unit: one cluster has a unit for each module.
func (u *Unit) id() string { return u.Kind + "/" + u.Namespace + "/" + u.Name + "@" + u.Part }

// String returns the unit as messages name it.
func (u *Unit) String() string {
	if u.Kind == clusterKind {
		return "cluster " + u.Name
	}
	if u.Kind == "pod" {
		return "Pod " + u.Name
	}
	return u.Kind + "/" + u.Name
}

const clusterKind = "cluster"

func workloadKinds() []client.Object {
	return []client.Object{&appsv1.Deployment{}, &appsv1.DaemonSet{}, &appsv1.StatefulSet{}}
}

// unitsOf returns the units of a world, in the order of their names.
func unitsOf(p *simulate.Play) []Unit {
	var all []Unit
	for _, kind := range workloadKinds() {
		for _, obj := range p.Store().Objects(kind, "") {
			if set, ok := obj.(*appsv1.StatefulSet); ok {
				all = append(all, ofSet(p, set)...)
				continue
			}
			all = append(all, ofWorkload(obj))
		}
	}
	for _, kind := range []client.Object{&fleetv1.ProxyAssemblage{}, &fleetv1.RemoteAssemblage{}} {
		for _, obj := range p.Store().Objects(kind, "") {
			all = append(all, ofCluster(obj)...)
		}
	}
	slices.SortFunc(all, func(a, b Unit) int {
		return cmp.Or(a.Compare(b.Key), cmp.Compare(a.Part, b.Part))
	})
	return all
}

func ofWorkload(obj client.Object) Unit {
	progress := record.ProgressOf(obj)
	return Unit{
		Key:      record.KeyOf(strings.ToLower(progress.Kind), obj.GetNamespace(), obj.GetName()),
		Rollout:  record.Reference(progress.Kind, obj.GetName()),
		Revision: workload.DigestOf(workload.TemplateOf(obj)), Ready: progress.IsWhole(), Labels: obj.GetLabels(),
	}
}

// ofSet returns the Pods of a StatefulSet of a group, or the StatefulSet.
func ofSet(p *simulate.Play, set *appsv1.StatefulSet) []Unit {
	group := p.GroupOf(set)
	if group == "" {
		u := ofWorkload(set)
		if replicas := podsOf(p, set); len(replicas) > 0 {
			u.pod = replicas[len(replicas)-1].name
		}
		return []Unit{u}
	}
	var all []Unit
	for _, r := range podsOf(p, set) {
		u := Unit{Key: record.KeyOf("pod", set.Namespace, r.name), Rollout: record.Reference("RolloutGroup", group), Part: set.Name, Labels: set.Labels}
		if r.pod != nil {
			u.Revision, u.Ready = record.RevisionOf(r.pod), isUp(r.pod)
		}
		all = append(all, u)
	}
	return all
}

// ofCluster returns what a cluster is assigned.
func ofCluster(obj client.Object) []Unit {
	kind := model.KindModule
	if _, ok := obj.(*fleetv1.RemoteAssemblage); ok {
		kind = model.KindBootstrap
	}
	assigned, status := models.Assignments(obj)
	all := make([]Unit, 0, len(assigned))
	for i := range assigned {
		a := &assigned[i]
		all = append(all, Unit{
			Key: record.KeyOf(clusterKind, obj.GetNamespace(), obj.GetName()), Rollout: record.Reference(kind, a.Name), Part: a.Name, Revision: a.Revision,
			Ready: slices.ContainsFunc(status.Syncs, func(s fleetv1.SyncStatus) bool {
				return s.Name == a.Name && s.Revision == a.Revision && s.AssignedAt.Equal(a.AssignedAt) && s.State == fleetv1.StateSucceeded
			}),
		})
	}
	return all
}

// units returns the units of a world.
func (e *explorer) units(p *simulate.Play) []Unit { return e.placed(unitsOf(p)) }

// placed gives units on clusters the labels of these, by which stages select them.
func (e *explorer) placed(all []Unit) []Unit {
	for i := range all {
		if u := &all[i]; u.Kind == clusterKind {
			u.Labels = e.clusters[types.NamespacedName{Namespace: u.Namespace, Name: u.Name}]
		}
	}
	return all
}

// clustersOf returns the labels of the clusters of a world.
func clustersOf(ctx context.Context, p *simulate.Play) (map[types.NamespacedName]map[string]string, error) {
	clusters, err := cluster.ListLive(ctx, p.Store(), "")
	of := map[types.NamespacedName]map[string]string{}
	for i := range clusters {
		of[clusters[i].NamespacedName] = clusters[i].Labels
	}
	return of, err
}

// ordinal is a Pod that a StatefulSet is to have; nil if it is missing.
type ordinal struct {
	name string
	pod  *corev1.Pod
}

// podsOf returns the Pods that a StatefulSet is to have.
func podsOf(p *simulate.Play, set *appsv1.StatefulSet) []ordinal {
	all := make([]ordinal, replica.Count(set))
	for i := range all {
		name := set.Name + "-" + strconv.Itoa(replica.FirstOrdinal(set)+i)
		pod, _ := p.Store().Object(&corev1.Pod{}, types.NamespacedName{Namespace: set.Namespace, Name: name}).(*corev1.Pod)
		if pod != nil && !metav1.IsControlledBy(pod, set) {
			pod = nil
		}
		all[i] = ordinal{name, pod}
	}
	return all
}

// isUp reports whether a Pod is ready, and stays.
func isUp(pod *corev1.Pod) bool {
	if pod == nil || pod.DeletionTimestamp != nil {
		return false
	}
	_, ready := replica.ReadySince(pod)
	return ready
}

// goals is what units had when the change was made, and what they have once it is rolled out.
type goals struct{ from, to map[string]string }

func (g goals) moves(u *Unit) bool { return g.from[u.id()] != g.to[u.id()] && g.to[u.id()] != "" }

// has reports whether a unit has what the change brings.
func (g goals) has(u *Unit) bool { return g.moves(u) && u.Revision == g.to[u.id()] }

func revisions(all []Unit) map[string]string {
	of := make(map[string]string, len(all))
	for i := range all {
		of[all[i].id()] = all[i].Revision
	}
	return of
}

// ids are those of units that move, in their order.
func (g goals) ids() []string {
	all := slices.Sorted(maps.Keys(g.to))
	return slices.DeleteFunc(all, func(id string) bool { return g.from[id] == g.to[id] })
}
