package proxy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/assemblage"
	"github.com/spillway-dev/spillway/internal/fleet/binding"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/ring"
)

// callTimeout is how long a cluster that answers may take for one request.
const callTimeout = 10 * time.Second

// observer makes all the reads.
type observer struct {
	now       func() time.Time
	hub       string
	cached    client.Reader
	referents assemblage.Referents
	clusters  reach
	watches   *watches
	orphans   *assemblage.Orphans
}

// reach is how clusters are reached, as by [assemblage.Clusters].
type reach interface {
	Connect(ctx context.Context, secret types.NamespacedName) (conn *cluster.Connection, problem, err error)
	IsLost(ctx context.Context, owned metav1.Object, secret string) (bool, error)
	Expect(ctx context.Context, secret types.NamespacedName) (over func())
	Failed(secret types.NamespacedName, err error)
}

// snapshot is one ProxyAssemblage, what was read about it, and the connection to its
// cluster, nil if there is none.
type snapshot struct {
	*Observed

	conn *cluster.Connection
}

// observe reads a ProxyAssemblage, and the Assemblage that it stands for.
func (b *observer) observe(ctx context.Context, key types.NamespacedName) (s snapshot, err error) {
	p := &v1alpha1.ProxyAssemblage{}
	err = b.cached.Get(ctx, key, p)
	if apierrors.IsNotFound(err) {
		b.forget(key)
		return s, ring.ErrGone
	}
	if err != nil {
		return s, fmt.Errorf("get ProxyAssemblage: %w", err)
	}
	b.referents.Begin(key)
	o := &Observed{Now: b.now(), Hub: b.hub, Chance: rand.Float64(), Proxy: p, Known: binding.Known{}} //nolint:gosec // no secret depends on it
	o.Orphaned, err = b.orphans.Orphaned(ctx, proxyKind, p, len(p.Spec.Assemblage.Syncs))
	if err != nil {
		return s, err
	}
	s.Observed = o
	secret := secretKey(p)
	if s.conn, o.Problem, err = b.clusters.Connect(ctx, secret); err != nil {
		return s, err
	}
	if s.conn == nil {
		b.watches.end(key)
		if p.DeletionTimestamp != nil && errors.Is(o.Problem, cluster.ErrMissing) {
			o.Lost, err = b.clusters.IsLost(ctx, p, secret.Name)
		}
		return s, err
	}
	o.Watched = b.watches.begin(key, secret, s.conn) //nolint:contextcheck // a watch outlives the pass that begins it
	return s, b.ask(ctx, o, s.conn)
}

// ask reads the Assemblage from the cluster.
func (b *observer) ask(ctx context.Context, o *Observed, conn *cluster.Connection) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	defer b.clusters.Expect(ctx, secretKey(o.Proxy))()
	live := &v1alpha1.Assemblage{}
	err := conn.Get(ctx, client.ObjectKeyFromObject(o.Proxy), live)
	switch {
	case err == nil:
		o.Live = live
	case isKindMissing(err):
		o.KindMissing = true
	case apierrors.IsNotFound(err): // there is none
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		o.Refused = refusal(err)
	case cluster.IsConnection(err), apierrors.IsServiceUnavailable(err), apierrors.IsTimeout(err), apierrors.IsInternalError(err):
		b.clusters.Failed(secretKey(o.Proxy), err)
		o.Problem = errBroken
	default:
		return fmt.Errorf("get Assemblage from the cluster: %w", err)
	}
	return nil
}

// isKindMissing tells a path that the API server does not serve from an object that does
// not exist.
func isKindMissing(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Reason == metav1.StatusReasonNotFound && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// refusal is what an API server says to whom it refuses, without what differs from one
// time to the next.
func refusal(err error) string {
	if apierrors.IsUnauthorized(err) {
		return "not accepted (any more)"
	}
	return err.Error()
}

// read reads the objects that a plan asks for.
func (b *observer) read(ctx context.Context, s *snapshot, p *Plan) (more bool, err error) {
	return b.referents.Complete(ctx, client.ObjectKeyFromObject(s.Proxy), p.Needs, s.Known)
}

// forget forgets a ProxyAssemblage that is gone.
func (b *observer) forget(key types.NamespacedName) {
	b.referents.Forget(key)
	b.watches.end(key)
	b.orphans.Forget(key)
}

func secretKey(p *v1alpha1.ProxyAssemblage) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Spec.KubeconfigRef.Name}
}
