package config

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/pods"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/snapshots"
	"github.com/spillway-dev/spillway/internal/kube"
)

// Offline is the ring without a manager: the same passes, one for each call.
type Offline struct{ *reconciler }

// NewOffline makes the ring run on a substitute for a cluster.
func NewOffline(on kube.Offline, o Options) *Offline {
	r := &reconciler{
		observer: newObserver(o, on, content.Source{Digests: content.Digesting(on), Values: on, Provided: true}),
		writer:   on,
		decide:   decision.Decide,
		reporter: newReporter(on.Events(), &o),
		status:   on.Status(),
	}
	if !o.PinNamespaces.IsEmpty() {
		r.snapshots = snapshots.NewKeeper(on, on, o.Now)
	}
	r.observer.policies = policy.NewReader(on, o.Namespaces)
	return &Offline{r}
}

// ReadPods lets the ring read Pods elsewhere than from the substitute.
func (o *Offline) ReadPods(from pods.Reader) { o.observer.pods = from }

// ReadValues lets the ring read the values of config elsewhere than their digests, which are cached.
func (o *Offline) ReadValues(from client.Reader) { o.observer.source.Values = from }

// DecideBy lets the ring decide by a function: one that sees less than there is shows what that is
// worth.
func (o *Offline) DecideBy(decide func(decision.Observed, decision.Options) decision.Plan) {
	o.decide = decide
}

// Waits is what every relevant workload waits for that is not up to date, as this ring would decide it now. It
// writes nothing.
func (o *Offline) Waits(ctx context.Context) ([]decision.Laggard, error) {
	observed, err := o.observer.observe(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(decision.Laggards(observed, o.observer.options.Options), func(l decision.Laggard) bool {
		return !o.observer.options.Watches(l.Name.Namespace)
	}), nil
}
