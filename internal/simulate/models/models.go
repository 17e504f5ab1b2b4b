package models

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// Options are how long everything takes, and what fails.
type Options struct {
	Readiness world.Readiness
	// Stop is how long Pods take to stop; nil is all of their grace period.
	Stop *time.Duration
	// Nodes is on how many nodes a DaemonSet runs.
	Nodes int
	// Unprepared are those whose Pods fail to prepare for a downscale: "statefulset/x" or
	// "pod/x-0".
	Unprepared map[string]bool
}

// Models are the controllers of Kubernetes, the kubelets and the clusters of a fleet,
// with what they remember.
type Models struct {
	Options

	// Endpoints answer for the Pods that are called.
	Endpoints *Endpoints

	world    *world.World
	sets     *statefulSets
	run      *runner
	jobs     *jobs
	kubelets *kubelets
	scalers  autoscalers
}

// Fork returns models of another world that remember the same.
func (m *Models) Fork(w *world.World) *Models {
	f := New(w, m.Options)
	f.Endpoints = m.Endpoints.fork(w)
	f.sets.templates, f.sets.seen = maps.Clone(m.sets.templates), m.sets.seen
	for uid, set := range m.run.sets {
		f.run.sets[uid] = &replicaSet{all: slices.Clone(set.all), leaving: slices.Clone(set.leaving), progressed: set.progressed, nodes: set.nodes}
	}
	f.run.lacking, f.jobs.lacking, f.kubelets.lacking = maps.Clone(m.run.lacking), maps.Clone(m.jobs.lacking), maps.Clone(m.kubelets.lacking)
	f.kubelets.started, f.scalers.all = maps.Clone(m.kubelets.started), maps.Clone(m.scalers.all)
	return f
}

// New returns the models of a world, which remember nothing yet.
func New(w *world.World, o Options) *Models {
	return &Models{
		Options: o, world: w,
		Endpoints: &Endpoints{World: w, failing: o.Unprepared, prepared: map[types.UID]time.Time{}, Called: map[record.Key]bool{}},
		sets:      &statefulSets{World: w, templates: map[string]corev1.PodTemplateSpec{}, seen: map[seenTemplate]string{}},
		run:       &runner{World: w, readiness: o.Readiness, stop: o.Stop, sets: map[types.UID]*replicaSet{}, lacking: map[lacking]bool{}},
		jobs:      &jobs{World: w, readiness: o.Readiness, lacking: map[types.NamespacedName]bool{}},
		kubelets:  &kubelets{World: w, readiness: o.Readiness, stop: o.Stop, lacking: map[types.NamespacedName]bool{}, started: map[types.UID]time.Time{}},
		scalers:   autoscalers{w, map[types.NamespacedName]scaling{}},
	}
}

// Actors are the models, in the order in which they act.
func (m *Models) Actors() []world.Actor {
	w := m.world
	return []world.Actor{
		m.scalers, m.sets, deployments{m.run}, daemonSets{m.run, m.Nodes}, providers{w},
		m.jobs, NewCollector(w), &clusters{World: w, readiness: m.Readiness}, m.kubelets,
	}
}

// Provisioner brings up the Clusters of Cluster API that stand in manifests.
func (m *Models) Provisioner() world.Actor { return clusterAPI{m.world} }
