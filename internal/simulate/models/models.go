package models

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// Models are the controllers of Kubernetes, the kubelets and the clusters of a fleet,
// with what they remember.
type Models struct {
	world     *world.World
	readiness world.Readiness
	stop      *time.Duration
	nodes     int
	sets      *statefulSets
	run       *runner
}

// Fork returns models of another world that remember the same.
func (m *Models) Fork(w *world.World) *Models {
	f := New(w, m.readiness, m.stop, m.nodes)
	f.sets.templates, f.sets.seen = maps.Clone(m.sets.templates), m.sets.seen
	for uid, set := range m.run.sets {
		f.run.sets[uid] = &replicaSet{all: slices.Clone(set.all), leaving: slices.Clone(set.leaving), progressed: set.progressed, nodes: set.nodes}
	}
	return f
}

// New returns the models of a world, which remember nothing yet.
func New(w *world.World, ready world.Readiness, stop *time.Duration, nodes int) *Models {
	return &Models{
		world: w, readiness: ready, stop: stop, nodes: nodes,
		sets: &statefulSets{World: w, templates: map[string]corev1.PodTemplateSpec{}, seen: map[seenTemplate]string{}},
		run:  &runner{World: w, readiness: ready, stop: stop, sets: map[types.UID]*replicaSet{}, lacking: map[lacking]bool{}},
	}
}

// Actors are the models, in the order in which they act.
func (m *Models) Actors() []world.Actor {
	w := m.world
	return []world.Actor{
		autoscalers{w, map[types.NamespacedName]scaling{}},
		m.sets, deployments{m.run}, daemonSets{m.run, m.nodes}, providers{w},
		&jobs{World: w, readiness: m.readiness, lacking: map[types.NamespacedName]bool{}},
		NewCollector(w),
		&clusters{World: w, readiness: m.readiness},
		&kubelets{World: w, readiness: m.readiness, stop: m.stop, lacking: map[types.NamespacedName]bool{}, started: map[types.UID]time.Time{}},
	}
}

// Provisioner brings up the Clusters of Cluster API that stand in manifests.
func (m *Models) Provisioner() world.Actor { return clusterAPI{m.world} }
