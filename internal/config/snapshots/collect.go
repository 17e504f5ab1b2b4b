package snapshots

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/ring"
)

// observed is the snapshots of a namespace and what refers to them.
type observed struct {
	now time.Time
	// snapshots are reduced, by their keys.
	snapshots map[Key]client.Object
	referred  map[Key]bool
	// sources has the present content of the objects of the namespace.
	sources content.Facts
}

// plan is what to do about the snapshots of a namespace.
type plan struct {
	// unreferred are to be deleted, unless the API server knows of something that refers to
	// them.
	unreferred map[Key]client.Object
	// lost do not exist, are referred to, and are of the present content of their source.
	lost []Key
	// wake is when one is to be deleted for its age alone.
	wake time.Time
}

// decide is pure.
func decide(o *observed) plan {
	p := plan{unreferred: map[Key]client.Object{}}
	for key, snapshot := range o.snapshots {
		until := snapshot.GetCreationTimestamp().Add(Grace)
		switch {
		case o.referred[key]:
		case o.now.Before(until):
			p.wake = ring.Earlier(p.wake, until)
		default:
			p.unreferred[key] = snapshot
		}
	}
	for key := range o.referred {
		source := content.Object{Kind: key.Kind, Namespace: key.Namespace, Name: key.Name}
		digest, exists := o.sources.DigestOf(source)
		if o.snapshots[key] == nil && exists && pin.ShortDigest(digest) == key.Digest {
			p.lost = append(p.lost, key)
		}
	}
	return p
}

// collector collects the snapshots of namespaces, and restores those that were deleted.
type collector struct {
	*Keeper

	// digests reads ConfigMaps and Secrets as they were reduced.
	digests client.Reader
	where   *Where
}

// Reconcile makes one pass over the snapshots of a namespace.
func (c *collector) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	defer ring.UnderWay.Begin("config-snapshots")()
	if !c.where.On(ctx, req.Name) { // not any more; its snapshots stay, as those of a namespace that is not named any more
		return reconcile.Result{}, nil
	}
	// 1. Observe.
	o, err := c.observe(ctx, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	// 2. Plan.
	p := decide(o)
	// 3. Act: restore first.
	var failed []error
	for key, err := range c.Ensure(ctx, p.lost) {
		failed = append(failed, fmt.Errorf("restore %s: %w", key.Snapshot(), err))
	}
	failed = append(failed, c.collect(ctx, req.Name, p.unreferred))
	if err := errors.Join(failed...); err != nil {
		return reconcile.Result{}, err
	}
	if p.wake.IsZero() {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: max(p.wake.Sub(c.now()), time.Second)}, nil
}

func (c *collector) observe(ctx context.Context, namespace string) (*observed, error) {
	o := &observed{now: c.now(), snapshots: map[Key]client.Object{}}
	var (
		configMaps corev1.ConfigMapList
		secrets    corev1.SecretList
		objects    []client.Object
	)
	for _, list := range []client.ObjectList{&configMaps, &secrets} {
		if err := c.digests.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list snapshots: %w", err)
		}
	}
	for i := range configMaps.Items {
		objects = append(objects, &configMaps.Items[i])
	}
	for i := range secrets.Items {
		objects = append(objects, &secrets.Items[i])
	}
	for _, obj := range objects {
		if key, ok := SourceOf(obj); ok {
			o.snapshots[key] = obj
		}
	}
	o.sources = content.FactsOf(objects...)
	var err error
	o.referred, err = Referred(ctx, c.referrers, namespace)
	return o, err
}

// collect deletes snapshots to which nothing refers by the API server either. Nothing is
// pinned meanwhile.
func (c *collector) collect(ctx context.Context, namespace string, unreferred map[Key]client.Object) error {
	if len(unreferred) == 0 {
		return nil
	}
	c.using.Lock()
	defer c.using.Unlock()
	referred, err := Referred(ctx, c.live, namespace)
	if err != nil {
		return err
	}
	var failed []error
	for key, snapshot := range unreferred {
		if referred[key] {
			continue
		}
		err := c.remove(ctx, snapshot)
		if err == nil {
			log.FromContext(ctx).V(1).Info("collected a snapshot", "kind", string(key.Kind), "name", key.Snapshot())
		} else if !ring.IsConflict(err) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
