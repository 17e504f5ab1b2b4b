package models

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// clusterAPI brings Clusters up immediately, with a kubeconfig: manifests are taken as
// running, and neither stands in them.
type clusterAPI struct{ *world.World }

// Wakes implements [world.Actor].
func (c clusterAPI) Wakes(_, after client.Object) []types.NamespacedName {
	if IsClusterAPI(after) {
		return []types.NamespacedName{client.ObjectKeyFromObject(after)}
	}
	return nil
}

// IsClusterAPI is true of Cluster API's Clusters, in whichever version they are written.
func IsClusterAPI(obj client.Object) bool {
	return obj != nil && obj.GetObjectKind().GroupVersionKind().GroupKind() == cluster.GVK.GroupKind()
}

// Act implements [world.Actor].
func (c clusterAPI) Act(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	kind := &unstructured.Unstructured{}
	kind.SetGroupVersionKind(cluster.GVK)
	seen, ok := c.Store.Object(kind, key).(*unstructured.Unstructured)
	if !ok {
		return 0, nil
	}
	up := seen.DeepCopy()
	if err := unstructured.SetNestedField(up.Object, true, "status", "initialization", "controlPlaneInitialized"); err != nil {
		return 0, fmt.Errorf("bring up Cluster %s: %w", key.Name, err)
	}
	kubeconfig := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: cluster.SecretName(key.Name)}}
	if err := c.Store.Create(ctx, kubeconfig); err != nil && !apierrors.IsAlreadyExists(err) {
		return 0, fmt.Errorf("bring up Cluster %s: %w", key.Name, err)
	}
	return 0, c.WriteStatus(ctx, up)
}

// clusters carry out what they are assigned: a sync has succeeded once its time has
// passed. The times are those of "cluster/x".
type clusters struct {
	*world.World

	readiness world.Readiness
}

// Wakes implements [world.Actor].
func (c *clusters) Wakes(_, after client.Object) []types.NamespacedName {
	switch after.(type) {
	case *fleetv1.ProxyAssemblage, *fleetv1.RemoteAssemblage:
		return []types.NamespacedName{client.ObjectKeyFromObject(after)}
	default:
		return nil
	}
}

// Act implements [world.Actor].
func (c *clusters) Act(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	again := time.Duration(0)
	for _, kind := range fleetKinds() {
		seen := c.Store.Object(kind, key)
		if seen == nil {
			continue
		}
		assemblage, _ := seen.DeepCopyObject().(client.Object)
		assigned, status := Assignments(assemblage)
		rest := c.report(assemblage, assigned, status)
		if rest > 0 && (again == 0 || rest < again) {
			again = rest
		}
		if err := c.WriteStatus(ctx, assemblage); err != nil {
			return 0, err
		}
	}
	return again, nil
}

// fleetKinds are the kinds in which clusters are assigned what to run.
func fleetKinds() []client.Object {
	return []client.Object{&fleetv1.ProxyAssemblage{}, &fleetv1.RemoteAssemblage{}}
}

// Assignments are what an assemblage assigns, and its status.
func Assignments(obj client.Object) ([]fleetv1.Assignment, *fleetv1.AssemblageStatus) {
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
	broken := c.IsBroken("cluster", obj.GetNamespace(), obj.GetName())
	for i := range assigned {
		takes := c.ReadyIn(c.readiness, "cluster", obj.GetName(), func() world.Revision { return assignedRevision(assigned[i].Name, assigned[i].Revision) })
		if broken {
			takes = world.Never
		}
		s, rest := c.reportOn(&assigned[i], former, takes, c.Faults[record.KeyOf("cluster", obj.GetNamespace(), obj.GetName())])
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
func (c *clusters) reportOn(a *fleetv1.Assignment, former []fleetv1.SyncStatus, takes time.Duration, fault world.Fault) (fleetv1.SyncStatus, time.Duration) {
	before, now := formerly(former, a), metav1.NewMicroTime(c.Now)
	s := fleetv1.SyncStatus{
		Name: a.Name, Revision: a.Revision, AssignedAt: a.AssignedAt, State: fleetv1.StateSucceeded,
		LastSucceededRevision: a.Revision, LastSucceededAssignedAt: a.AssignedAt, LastTransitionTime: &now,
	}
	rest := time.Duration(0)
	if before == nil || before.State != fleetv1.StateSucceeded {
		rest = c.rest(a, takes)
	}
	if rest != 0 {
		s.State = fleetv1.StateUpdating
		s.LastSucceededRevision, s.LastSucceededAssignedAt = succeeded(former, s.Name)
	}
	if fault == world.Crashing {
		s.State, s.Reason = fleetv1.StateFailed, "HealthCheckFailed"
	}
	if before != nil && before.State == s.State {
		s.LastTransitionTime = before.LastTransitionTime
	}
	return s, rest
}

// rest is how long an assignment takes yet; negative is for ever.
func (c *clusters) rest(a *fleetv1.Assignment, takes time.Duration) time.Duration {
	if takes == world.Never || a.AssignedAt == nil {
		return min(takes, 0)
	}
	return max(0, a.AssignedAt.Add(takes).Sub(c.Now))
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

// succeeded is the assignment at which a sync has succeeded last.
func succeeded(reports []fleetv1.SyncStatus, name string) (revision string, assignedAt *metav1.MicroTime) {
	for i := range reports {
		if reports[i].Name == name {
			return reports[i].LastSucceededRevision, reports[i].LastSucceededAssignedAt
		}
	}
	return "", nil
}
