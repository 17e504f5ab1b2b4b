package subject

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/metrics"
)

// Kind is a kind with rollouts. The permission to read it is that of its ring, so that a
// manager without the ring needs none.
type Kind struct {
	Name, Ring string
	Group      schema.GroupVersion
	// Object is empty.
	Object client.Object
	// IsOfCluster is true of a kind that a manager of some namespaces does not read.
	IsOfCluster bool
}

// KindsOf are the kinds that a manager with these rings reads. Namespaces are those that it
// watches, all if empty.
func KindsOf(rings, namespaces []string) []Kind {
	return slices.DeleteFunc(kinds(), func(k Kind) bool {
		return !slices.Contains(rings, k.Ring) || k.IsOfCluster && len(namespaces) > 0
	})
}

// kinds are all.
func kinds() []Kind {
	return []Kind{
		{Name: KindPolicy, Ring: metrics.RingConfig, Group: v1alpha1.GroupVersion, Object: &v1alpha1.ConfigPolicy{}},
		{Name: KindClusterPolicy, Ring: metrics.RingConfig, Group: v1alpha1.GroupVersion, Object: &v1alpha1.ClusterConfigPolicy{}, IsOfCluster: true},
		{Name: KindGroup, Ring: metrics.RingZones, Group: v1alpha1.GroupVersion, Object: &v1alpha1.RolloutGroup{}},
		{Name: KindInstance, Ring: metrics.RingPlans, Group: v1beta1.GroupVersion, Object: &v1beta1.Instance{}},
		{Name: KindModule, Ring: metrics.RingFleet, Group: fleetv1.GroupVersion, Object: &fleetv1.Module{}},
		{Name: KindBootstrapModule, Ring: metrics.RingFleet, Group: fleetv1.GroupVersion, Object: &fleetv1.BootstrapModule{}},
	}
}
