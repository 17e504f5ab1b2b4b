package assemblage

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spillway-dev/spillway/internal/fleet/binding"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
)

// Clusters are how the hub knows its clusters.
type Clusters struct {
	*cluster.Directory
	*cluster.Registry
}

// Events wakes whom a cluster concerns when it has changed whether it answers, its
// Secret has changed, or the Cluster of Cluster API is gone. The Secret's name is empty
// when all may have.
func (c *Clusters) Events(concerned func(ctx context.Context, secret types.NamespacedName) []reconcile.Request) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		wake := func(secret types.NamespacedName) {
			for _, request := range concerned(ctx, secret) {
				queue.Add(request)
			}
		}
		c.Registry.Subscribe(wake)
		c.SubscribeSecrets(wake)
		c.SubscribeLosses(wake)
		return nil
	})
}

// ForgetGone has the connections to clusters dropped whose Secret is gone.
func (c *Clusters) ForgetGone(ctx context.Context) {
	c.SubscribeSecrets(func(secret types.NamespacedName) {
		if version, err := c.SecretVersion(ctx, secret); err == nil && version == "" {
			c.Forget(secret)
		}
	})
}

// Reach says why a cluster cannot be reached, nil if it can be, or if that is unknown.
func (c *Clusters) Reach(ctx context.Context, secret types.NamespacedName) (problem, err error) {
	_, problem, err = c.Connect(ctx, secret)
	if errors.Is(problem, cluster.ErrUnproven) {
		problem = nil
	}
	return problem, err
}

// Connect is [cluster.Registry.Connect] with the Secret as it is known here. What is
// wrong with the cluster is the problem; an error is that the hub did not answer.
func (c *Clusters) Connect(ctx context.Context, secret types.NamespacedName) (conn *cluster.Connection, problem, err error) {
	version, err := c.SecretVersion(ctx, secret)
	if err != nil {
		return nil, nil, err
	}
	conn, err = c.Registry.Connect(ctx, secret, version)
	var (
		invalid *cluster.InvalidError
		down    *cluster.UnreachableError
	)
	if errors.Is(err, cluster.ErrMissing) || errors.Is(err, cluster.ErrUnproven) || errors.As(err, &invalid) || errors.As(err, &down) {
		return nil, err, nil
	}
	return conn, nil, err
}

// Referents are what bindings refer to, as package referent reads it.
type Referents interface {
	Begin(reader types.NamespacedName)
	Forget(reader types.NamespacedName)
	Complete(ctx context.Context, seeker types.NamespacedName, needs []binding.Object, known binding.Known) (more bool, err error)
}
