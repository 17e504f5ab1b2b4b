package simulate

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Unhindered is how a test brings about what stands in manifests.
func Unhindered(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return unhindered(objects)
}

// ProgressAfter are the conditions that a Deployment of a cluster has a while after it
// was taken in.
func ProgressAfter(ctx context.Context, d *appsv1.Deployment, o Options, while time.Duration) ([]appsv1.DeploymentCondition, error) {
	s, err := newSimulation(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := s.prepare(ctx, nil); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	s.Within = while
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	after, _ := s.Store.Object(d, client.ObjectKeyFromObject(d)).(*appsv1.Deployment)
	return after.Status.Conditions, nil
}
