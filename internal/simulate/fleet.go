package simulate

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/simulate/models"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
	"github.com/spillway-dev/spillway/rollout"
)

// newFleet is the fleet ring: one actor for each kind of module. All modules are looked
// at again when a cluster or anything that belongs to one of them changes.
func newFleet(ctx context.Context, w *world.World, o hub.Options) ([]*ring, error) {
	run, err := hub.NewOffline(ctx, kube.Offline{Client: w.Client, Indexer: w.Store}, o)
	if err != nil {
		return nil, err
	}
	reconcilers := run.Reconcilers()
	var rings []*ring
	for _, kind := range slices.Sorted(maps.Keys(reconcilers)) {
		rings = append(rings, &ring{
			Reconciler: reconcilers[kind],
			name:       record.RingFleet,
			requests: func(obj client.Object) []types.NamespacedName {
				if concernsFleet(obj) {
					return slices.Collect(maps.Keys(w.Modules[kind]))
				}
				return nil
			},
			waits: func(context.Context) ([]record.Wait, error) { return nil, nil },
		})
	}
	rings[0].waits = waitsOf(run.Status, fleetWait)
	return rings, nil
}

func concernsFleet(obj client.Object) bool {
	switch obj.(type) {
	case *fleetv1.Module, *fleetv1.BootstrapModule, *fleetv1.ProxyAssemblage, *fleetv1.RemoteAssemblage,
		*v1alpha1.ModuleRevision, *v1alpha1.RolloutGate, *v1alpha1.ClusterBudget, *corev1.Secret:
		return true
	default:
		return models.IsClusterAPI(obj)
	}
}

func fleetWait(e *decision.Explanation) (w record.Wait, waits bool) {
	w = record.Wait{Ring: record.RingFleet, Namespace: e.Namespace, Object: record.Reference(e.Kind, e.Name), Reason: e.Reason, Sentence: e.Sentence}
	return w, e.Phase != string(rollout.PhaseComplete)
}

// Stage is one of a rollout of a module.
type Stage struct {
	// Object is the module, "module/shop".
	Object, Namespace, Name string
	Begun                   record.Offset
}

// stages are those that have begun, in order.
func (s *simulation) stages() []Stage {
	var all []Stage
	for _, kind := range slices.Sorted(maps.Keys(s.Modules)) {
		for _, obj := range s.Store.Objects(model.New(kind), "") {
			_, status := model.Parts(obj)
			for i := range status.Stages {
				if stage := &status.Stages[i]; stage.StartedAt != nil {
					all = append(all, Stage{record.Reference(kind, obj.GetName()), obj.GetNamespace(), stage.Name, s.offset(stage.StartedAt.Time)})
				}
			}
		}
	}
	return all
}
