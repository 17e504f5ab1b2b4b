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
	"github.com/spillway-dev/spillway/internal/fleet/agent"
	"github.com/spillway-dev/spillway/internal/fleet/binding"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/referent"
)

const (
	// callTimeout is how long a cluster that answers may take for one request.
	callTimeout = 10 * time.Second
	// looksParallel bounds how often a decision may ask to look at more.
	looksParallel = 70
)

// observer makes all the reads.
type observer struct {
	now       func() time.Time
	cached    client.Reader
	referents *referent.Reader
	clusters  *agent.Clusters
	watches   *watches
	orphans   *agent.Orphans
}

// observe reads a ProxyAssemblage, and the Assemblage that it stands for. There is
// nothing to observe if o is nil.
func (b *observer) observe(ctx context.Context, key types.NamespacedName) (o *Observed, conn *cluster.Connection, err error) {
	p := &v1alpha1.ProxyAssemblage{}
	err = b.cached.Get(ctx, key, p)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("get ProxyAssemblage: %w", err)
	}
	b.referents.Begin(key)
	o = &Observed{Now: b.now(), Chance: rand.Float64(), Proxy: p, Known: binding.Known{}} //nolint:gosec // no secret depends on it
	o.Orphaned, err = b.orphans.Orphaned(ctx, v1alpha1.GroupVersion.WithKind("ProxyAssemblage"), p, len(p.Spec.Assemblage.Syncs))
	if err != nil {
		return nil, nil, err
	}
	secret := secretKey(p)
	if conn, o.Problem, err = b.clusters.Connect(ctx, secret); err != nil {
		return nil, nil, err
	}
	if conn == nil {
		b.watches.end(key)
		if p.DeletionTimestamp != nil && errors.Is(o.Problem, cluster.ErrMissing) {
			o.Lost, err = b.clusters.Directory.IsLost(ctx, p, secret.Name)
		}
		return o, nil, err
	}
	o.Watched = b.watches.begin(key, secret, conn) //nolint:contextcheck // a watch outlives the pass that begins it
	return o, conn, b.ask(ctx, o, conn)
}

func secretKey(p *v1alpha1.ProxyAssemblage) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Spec.KubeconfigRef.Name}
}

// ask reads the Assemblage from the cluster.
func (b *observer) ask(ctx context.Context, o *Observed, conn *cluster.Connection) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
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
		b.clusters.Registry.Suspect(secretKey(o.Proxy))
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

// decide plans, and reads the objects that the plan asks for.
func (b *observer) decide(ctx context.Context, o *Observed) (Plan, error) {
	key := client.ObjectKeyFromObject(o.Proxy)
	for range looksParallel {
		p := Decide(o)
		if more, err := b.referents.Complete(ctx, key, p.Needs, o.Known); err != nil || !more {
			return p, err
		}
	}
	return Plan{}, errors.New("the plan keeps asking for more objects")
}

// forget forgets a ProxyAssemblage that is gone.
func (b *observer) forget(key types.NamespacedName) {
	b.referents.Forget(key)
	b.watches.end(key)
	b.orphans.Forget(key)
}
