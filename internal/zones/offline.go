package zones

import (
	"cmp"
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	versions "k8s.io/apimachinery/pkg/version"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/zones/decision"
)

// Offline is the ring without a manager: the same passes, asked for one by one.
type Offline struct{ *reconciler }

// NewOffline makes the ring run upon what stands for a cluster.
func NewOffline(ctx context.Context, on kube.Offline, o Options) (*Offline, error) {
	err := errors.Join(
		on.Indexer.IndexField(ctx, &appsv1.StatefulSet{}, groupIndex, indexGroup),
		on.Indexer.IndexField(ctx, &corev1.Pod{}, ownerIndex, indexOwner),
	)
	if err != nil {
		return nil, err
	}
	a := actor{client: on, now: o.Now}
	b := &budgets{reader: on}
	b.watched.Store(true)
	version := func() (*versions.Info, error) {
		return &versions.Info{GitVersion: cmp.Or(on.Version, kube.OfflineVersion)}, nil
	}
	return &Offline{&reconciler{
		observer: observer{
			options: o, cached: cachedViewer{on}, live: liveViewer{on}, budgets: b,
			server: &server{version: version, try: a.keepsMaxUnavailable},
		},
		actor:    a,
		reporter: newReporter(on.Events()),
	}}, nil
}

// Status explains every group, and writes nothing.
func (o *Offline) Status(ctx context.Context) ([]decision.Explanation, error) {
	return Status(ctx, o.actor.client, o.observer.options, "")
}
