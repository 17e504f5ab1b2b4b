package simulate

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/simulate/apiserver"
	"github.com/spillway-dev/spillway/internal/simulate/models"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// NewCollected is a store with the garbage collector, and rest lets that do what it has
// to do.
func NewCollected(ctx context.Context) (_ *apiserver.Store, rest func() error, _ error) {
	w, err := world.New(ctx, time.Now(), world.Server{MaxUnavailable: true})
	if err != nil {
		return nil, nil, err
	}
	w.Add(models.NewCollector(w))
	return w.Store, func() error { return w.Rest(ctx) }, nil
}

// KeepsMaxUnavailable is true of a cluster of a version in which there are some objects.
func KeepsMaxUnavailable(version string, present ...client.Object) (bool, error) {
	s, err := world.ServerOf(version, present)
	return s.MaxUnavailable, err
}
