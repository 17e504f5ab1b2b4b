package simulate

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// After is what there is o.Within after a change.
func After(ctx context.Context, base, change []*unstructured.Unstructured, o Options) ([]client.Object, error) {
	s, err := newSimulation(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := s.prepare(ctx, base); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	err = s.change(ctx, change)
	return s.Store.All(), err
}
