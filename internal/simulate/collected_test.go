package simulate

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/simulate/apiserver"
)

// NewCollected is a store with the garbage collector, and rest lets that do what it has
// to do.
func NewCollected(ctx context.Context) (_ *apiserver.Store, rest func() error, _ error) {
	w, err := newWorld(ctx, time.Now(), server{maxUnavailable: true})
	if err != nil {
		return nil, nil, err
	}
	w.add(&collector{world: w, waiting: map[types.UID]bool{}})
	return w.store, func() error { return w.rest(ctx) }, nil
}

// KeepsMaxUnavailable is true of a cluster of a version in which there are some objects.
func KeepsMaxUnavailable(version string, present ...client.Object) (bool, error) {
	s, err := serverOf(version, present)
	return s.maxUnavailable, err
}
