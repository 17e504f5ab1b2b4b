package simulate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/rollout"
)

// newFleet is the fleet ring: one actor for each kind of module. All modules are looked
// at again when a cluster or anything that belongs to one of them changes.
func newFleet(ctx context.Context, w *world, o hub.Options) ([]*ring, error) {
	run, err := hub.NewOffline(ctx, kube.Offline{Client: w.store, Indexer: w.store}, o)
	if err != nil {
		return nil, err
	}
	reconcilers := run.Reconcilers()
	var rings []*ring
	for _, kind := range slices.Sorted(maps.Keys(reconcilers)) {
		rings = append(rings, &ring{
			Reconciler: reconcilers[kind],
			name:       RingFleet,
			requests: func(obj client.Object) []types.NamespacedName {
				if concernsFleet(obj) {
					return slices.Collect(maps.Keys(w.modules[kind]))
				}
				return nil
			},
			waits: func(context.Context) ([]Wait, error) { return nil, nil },
		})
	}
	rings[0].waits = waitsOf(run.Status, fleetWait)
	return rings, nil
}

func concernsFleet(obj client.Object) bool {
	switch obj.(type) {
	case *fleetv1.Module, *fleetv1.BootstrapModule, *fleetv1.ProxyAssemblage, *fleetv1.RemoteAssemblage,
		*v1alpha1.ModuleRevision, *v1alpha1.RolloutGate, *corev1.Secret:
		return true
	default:
		return isClusterAPI(obj)
	}
}

// isClusterAPI is true of Cluster API's Clusters, in whichever version they are written.
func isClusterAPI(obj client.Object) bool {
	return obj != nil && obj.GetObjectKind().GroupVersionKind().GroupKind() == cluster.GVK.GroupKind()
}

// clusterAPI brings Clusters up at once, with a kubeconfig: manifests are taken as
// running, and neither stands in them.
type clusterAPI struct{ *world }

func (c clusterAPI) wakes(_, after client.Object) []types.NamespacedName {
	if isClusterAPI(after) {
		return []types.NamespacedName{client.ObjectKeyFromObject(after)}
	}
	return nil
}

func (c clusterAPI) look(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	kind := &unstructured.Unstructured{}
	kind.SetGroupVersionKind(cluster.GVK)
	seen, ok := c.store.Object(kind, key).(*unstructured.Unstructured)
	if !ok {
		return 0, nil
	}
	up := seen.DeepCopy()
	if err := unstructured.SetNestedField(up.Object, true, "status", "initialization", "controlPlaneInitialized"); err != nil {
		return 0, fmt.Errorf("bring up Cluster %s: %w", key.Name, err)
	}
	kubeconfig := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: cluster.SecretName(key.Name)}}
	if err := c.store.Create(ctx, kubeconfig); err != nil && !apierrors.IsAlreadyExists(err) {
		return 0, fmt.Errorf("bring up Cluster %s: %w", key.Name, err)
	}
	return 0, c.writeStatus(ctx, up)
}

func fleetWait(e *decision.Explanation) (w Wait, waits bool) {
	w = Wait{Ring: RingFleet, Namespace: e.Namespace, Object: reference(e.Kind, e.Name), Reason: e.Reason, Sentence: e.Sentence}
	return w, e.Phase != string(rollout.PhaseComplete)
}

// clusters carry out what they are assigned: a sync has succeeded once its time has
// passed. The times are those of "cluster/x".
type clusters struct {
	*world

	readiness Readiness
}

func (c *clusters) wakes(_, after client.Object) []types.NamespacedName {
	switch after.(type) {
	case *fleetv1.ProxyAssemblage, *fleetv1.RemoteAssemblage:
		return []types.NamespacedName{client.ObjectKeyFromObject(after)}
	default:
		return nil
	}
}

func (c *clusters) look(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	again := time.Duration(0)
	for _, kind := range []client.Object{&fleetv1.ProxyAssemblage{}, &fleetv1.RemoteAssemblage{}} {
		seen := c.store.Object(kind, key)
		if seen == nil {
			continue
		}
		assemblage, _ := seen.DeepCopyObject().(client.Object)
		assigned, status := assignments(assemblage)
		rest := c.report(assemblage, assigned, status)
		if rest > 0 && (again == 0 || rest < again) {
			again = rest
		}
		if err := c.writeStatus(ctx, assemblage); err != nil {
			return 0, err
		}
	}
	return again, nil
}

// assignments are what an assemblage assigns, and its status.
func assignments(obj client.Object) ([]fleetv1.Assignment, *fleetv1.AssemblageStatus) {
	var assigned []fleetv1.Assignment
	switch a := obj.(type) {
	case *fleetv1.ProxyAssemblage:
		for i := range a.Spec.Assemblage.Syncs {
			if s := &a.Spec.Assemblage.Syncs[i]; s.Source != nil {
				assigned = append(assigned, s.Assignment)
			}
		}
		return assigned, &a.Status
	case *fleetv1.RemoteAssemblage:
		for i := range a.Spec.Syncs {
			if s := &a.Spec.Syncs[i]; s.Source != nil {
				assigned = append(assigned, s.Assignment)
			}
		}
		return assigned, &a.Status
	default:
		return nil, &fleetv1.AssemblageStatus{}
	}
}

// report says what becomes of each assignment, and when the next one succeeds.
func (c *clusters) report(obj client.Object, assigned []fleetv1.Assignment, status *fleetv1.AssemblageStatus) time.Duration {
	former := status.Syncs
	status.ObservedGeneration, status.Syncs = obj.GetGeneration(), nil
	again := time.Duration(0)
	takes := c.readyIn(c.readiness, "cluster", obj.GetName())
	if c.isBroken(unit{"cluster", obj.GetNamespace(), obj.GetName()}) {
		takes = Never
	}
	for i := range assigned {
		s, rest := c.reportOn(&assigned[i], former, takes)
		s.ObservedGeneration = obj.GetGeneration()
		status.Syncs = append(status.Syncs, s)
		if rest > 0 && (again == 0 || rest < again) {
			again = rest
		}
	}
	return again
}

// reportOn says what becomes of one assignment, and how long it takes yet. One that
// has succeeded has not failed since.
func (c *clusters) reportOn(a *fleetv1.Assignment, former []fleetv1.SyncStatus, takes time.Duration) (fleetv1.SyncStatus, time.Duration) {
	before, now := formerly(former, a), metav1.NewMicroTime(c.now)
	s := fleetv1.SyncStatus{
		Name: a.Name, Revision: a.Revision, AssignedAt: a.AssignedAt, State: fleetv1.StateSucceeded,
		LastSucceededRevision: a.Revision, LastTransitionTime: &now,
	}
	rest := time.Duration(0)
	if before == nil || before.State != fleetv1.StateSucceeded {
		rest = c.rest(a, takes)
	}
	if rest != 0 {
		s.State, s.LastSucceededRevision = fleetv1.StateUpdating, succeeded(former, s.Name)
	}
	if before != nil && before.State == s.State {
		s.LastTransitionTime = before.LastTransitionTime
	}
	return s, rest
}

// rest is how long an assignment takes yet; negative is for ever.
func (c *clusters) rest(a *fleetv1.Assignment, takes time.Duration) time.Duration {
	if takes == Never || a.AssignedAt == nil {
		return min(takes, 0)
	}
	return max(0, a.AssignedAt.Add(takes).Sub(c.now))
}

// formerly is what was reported of an assignment, nil if nothing was.
func formerly(reports []fleetv1.SyncStatus, a *fleetv1.Assignment) *fleetv1.SyncStatus {
	i := slices.IndexFunc(reports, func(s fleetv1.SyncStatus) bool {
		return s.Name == a.Name && s.Revision == a.Revision && s.AssignedAt.Equal(a.AssignedAt)
	})
	if i < 0 {
		return nil
	}
	return &reports[i]
}

// succeeded is the revision at which a sync has succeeded last.
func succeeded(reports []fleetv1.SyncStatus, name string) string {
	for i := range reports {
		if reports[i].Name == name {
			return reports[i].LastSucceededRevision
		}
	}
	return ""
}
