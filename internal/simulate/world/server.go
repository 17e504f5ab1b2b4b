package world

import (
	"cmp"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	semver "k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/kube"
)

// Server is the version of Kubernetes that is simulated, and what it does that others do
// not, as far as a rollout can tell.
type Server struct {
	Version string
	// MaxUnavailable: StatefulSets have rollingUpdate.maxUnavailable (feature gate
	// MaxUnavailableStatefulSet).
	MaxUnavailable bool
	// Advances: its controller advances status.currentRevision of StatefulSets of type
	// OnDelete as well.
	Advances bool
}

// since is the first version that does both by itself.
var since = semver.MajorMinor(1, 37)

// ServerOf is the server that was asked for its version. One that has kept the field in
// any StatefulSet has the gate, whatever its version is.
func ServerOf(asked string, present []client.Object) (Server, error) {
	s := Server{Version: cmp.Or(asked, kube.OfflineVersion)}
	v, err := semver.ParseGeneric(s.Version)
	if err != nil {
		return Server{}, fmt.Errorf("version of the API server: %w", err)
	}
	s.MaxUnavailable, s.Advances = v.AtLeast(since), v.AtLeast(since)
	for _, obj := range present {
		if set, ok := obj.(*appsv1.StatefulSet); ok && set.Spec.UpdateStrategy.RollingUpdate != nil && set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable != nil {
			s.MaxUnavailable = true
		}
	}
	return s, nil
}
