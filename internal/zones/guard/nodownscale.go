package guard

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// forbidder refuses to lower the replicas of what has the label. An admission
// policy does the same for objects; a Scale does not say what labels its object has.
type forbidder struct {
	options Options
	live    client.Reader
}

// Handle answers one request, a dry run like any other.
func (f *forbidder) Handle(ctx context.Context, req admission.Request) admission.Response {
	c, err := changeOf(&req)
	switch {
	case err != nil:
		return f.options.unknown(err.Error())
	case c.unclear():
		return f.options.unknown("old/new replicas is nil, allowing the change")
	case !c.lowers():
		return allow()
	}
	if c.labels, err = f.labels(ctx, &c); err != nil {
		return f.options.unknown(fmt.Sprintf("can't get %s/%s in namespace %s, allowing the change: %s", c.resource, c.name, c.namespace, err))
	}
	return c.judge()
}

// judge refuses what has the label.
func (c *change) judge() admission.Response {
	if value, name, _ := vocabulary.NoDownscale.Lookup(c.labels); value == "true" {
		return deny(c.refused(fmt.Sprintf("it has the label '%s=true'", name)))
	}
	return allow()
}

// labels are those of the object that is scaled, as it is now.
func (f *forbidder) labels(ctx context.Context, c *change) (map[string]string, error) {
	var obj client.Object
	switch c.resource {
	case "statefulsets":
		obj = &appsv1.StatefulSet{}
	case "deployments":
		obj = &appsv1.Deployment{}
	case "replicasets":
		obj = &appsv1.ReplicaSet{}
	default:
		return nil, fmt.Errorf("unsupported resource %s", c.resource)
	}
	if err := f.live.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: c.name}, obj); err != nil {
		return nil, err //nolint:wrapcheck // Handle does
	}
	return obj.GetLabels(), nil
}
