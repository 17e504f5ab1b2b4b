package config

import (
	"context"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/kube"
)

// Offline is the ring without a manager: the same passes, one for each call.
type Offline struct{ *reconciler }

// NewOffline makes the ring run on a substitute for a cluster.
func NewOffline(on kube.Offline, o Options) *Offline {
	r := &reconciler{
		observer: newObserver(o, on, content.Source{Digests: content.Digesting(on), Values: on, Provided: true}),
		writer:   on,
		reporter: newReporter(on.Events(), o.Now),
		status:   on.Status(),
	}
	r.observer.policies = policy.NewReader(on, o.Namespaces)
	return &Offline{r}
}

// Status explains every relevant workload, and writes nothing.
func (o *Offline) Status(ctx context.Context) ([]Explanation, error) {
	observed, err := o.observer.observe(ctx)
	if err != nil {
		return nil, err
	}
	return explainAll(observed, o.observer.options), nil
}
