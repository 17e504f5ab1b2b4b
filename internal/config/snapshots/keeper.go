package snapshots

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
)

// writers is how many snapshots are written at a time.
const writers = 8

// Keeper writes snapshots.
type Keeper struct {
	// live reads from the API server.
	live client.Reader
	// referrers reads what refers to snapshots from caches.
	referrers client.Reader
	seen      cache.Cache
	writer    client.Writer
	now       func() time.Time
	// using is held while snapshots are pinned, and alone while some are deleted.
	using sync.RWMutex
}

// NewKeeper writes snapshots beside a manager that collects them, which leaves each new one for [Grace], or
// on a substitute for a cluster.
func NewKeeper(live client.Reader, writer client.Writer, now func() time.Time) *Keeper {
	return &Keeper{live: live, referrers: live, writer: writer, now: now}
}

// Jobs is a cache that has the Jobs of the namespaces with pins. Those that are not
// held are reduced to their pins.
func (k *Keeper) Jobs() cache.Cache { return k.seen }

// While keeps snapshots from being deleted until a function returns, which ensures that they
// exist and pins workloads to them.
func (k *Keeper) While(do func()) {
	k.using.RLock()
	defer k.using.RUnlock()
	do()
}

// Ensure writes the snapshots that do not exist, of the present content of their sources. It
// returns the errors of those that do not exist afterwards: a conflict if the content of the
// source is another one.
func (k *Keeper) Ensure(ctx context.Context, keys []Key) map[Key]error {
	failed := map[Key]error{}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(writers)
	for _, key := range keys {
		group.Go(func() error {
			if err := k.ensure(ctx, key); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[key] = err
			}
			return nil
		})
	}
	_ = group.Wait() // the errors are in failed
	return failed
}

func (k *Keeper) ensure(ctx context.Context, key Key) error {
	old := key.Kind.New()
	err := k.live.Get(ctx, key.object(), old)
	switch {
	case apierrors.IsNotFound(err):
		return k.create(ctx, key)
	case err != nil:
		return fmt.Errorf("get the snapshot %s: %w", key.Snapshot(), err)
	}
	again := againOf(old)
	content.Digest(old)
	if found, ok := SourceOf(old); !ok || found != key {
		return fmt.Errorf("%s %s exists and is no snapshot of %s %s; delete it", key.Kind, key.Snapshot(), key.Kind, key.Name)
	}
	expires, err := k.mayBeCollected(ctx, old, key)
	if err != nil || !expires {
		return err
	}
	return k.renew(ctx, old, again, key)
}

// mayBeCollected is true of a snapshot that another manager may be about to delete.
func (k *Keeper) mayBeCollected(ctx context.Context, old client.Object, key Key) (bool, error) {
	if k.now().Before(old.GetCreationTimestamp().Add(Grace / 2)) {
		return false, nil
	}
	referred, err := Referred(ctx, k.referrers, key.Namespace)
	return !referred[key], err
}

// renew replaces a snapshot by one with the same content and another UID: a deletion of the
// old one that another manager has decided fails. The content may be an earlier one of the
// source.
func (k *Keeper) renew(ctx context.Context, old, again client.Object, key Key) error {
	if err := k.remove(ctx, old); err != nil {
		return err
	}
	return k.write(ctx, again, key)
}

func (k *Keeper) create(ctx context.Context, key Key) error {
	source := key.Kind.New()
	if err := k.live.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, source); err != nil {
		return fmt.Errorf("get %s %s to take a snapshot: %w", key.Kind, key.Name, err)
	}
	snapshot, uid := snapshotOf(source, key), string(source.GetUID())
	content.Digest(source)
	if pin.ShortDigest(content.DigestAs(source, uid)) != key.Digest {
		resource := schema.GroupResource{Resource: string(key.Kind)}
		return apierrors.NewConflict(resource, key.Name, fmt.Errorf("its content is not that of snapshot %s any more", key.Snapshot())) //nolint:wrapcheck // it is a conflict
	}
	return k.write(ctx, snapshot, key)
}
