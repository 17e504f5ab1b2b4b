package hub

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/kube"
)

// Offline is the ring without a manager: the same passes, asked for one by one.
type Offline struct {
	on      kube.Offline
	options Options
}

// NewOffline runs the ring upon what stands for a hub. Nothing there carries out what
// is assigned: the caller says what becomes of that.
func NewOffline(ctx context.Context, on kube.Offline, o Options) (*Offline, error) {
	err := errors.Join(
		on.Indexer.IndexField(ctx, &spillway.ModuleRevision{}, moduleIndex, indexModule),
		on.Indexer.IndexField(ctx, &spillway.RolloutGate{}, moduleIndex, indexModule),
	)
	return &Offline{on: on, options: o}, err
}

// Reconcilers are one for each kind of module, by its name.
func (o *Offline) Reconcilers() map[string]reconcile.Reconciler {
	all := map[string]reconcile.Reconciler{}
	for _, k := range kinds() {
		all[k.name] = &reconciler{
			observer: observer{options: o.options, kind: k, cached: o.on, live: o.on, clusters: listing{o.on}},
			actor:    actor{kind: k, client: o.on, live: o.on, now: o.options.Now},
			reporter: newReporter(k, o.on.Events()),
		}
	}
	return all
}

// Status explains every module, and writes nothing.
func (o *Offline) Status(ctx context.Context) ([]decision.Explanation, error) {
	return Status(ctx, o.on, o.options, "")
}

// listing is a directory that lists the clusters again each time.
type listing struct{ client.Reader }

// List implements [Directory].
func (l listing) List(ctx context.Context, namespace string) ([]cluster.Cluster, error) {
	return cluster.ListLive(ctx, l.Reader, namespace)
}

// Subscribe implements [Directory]. Nothing is called: the caller that runs the ring does so.
func (listing) Subscribe(func(types.NamespacedName)) {}
