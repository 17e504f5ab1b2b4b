package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Identity is another one than the manager's, as which kinds are watched in one namespace that
// the manager itself has no permission to watch.
type Identity struct {
	types.NamespacedName

	Config *rest.Config
	Client client.Client
}

// identity are the watches of an identity. They run as long as a reader needs them.
type identity struct {
	ctx  context.Context //nolint:containedctx // it is the life of the caches, and no request's
	stop context.CancelFunc
	// readers are those that read as the identity; guarded by the lock of the Watches.
	readers map[types.NamespacedName]bool

	// mu guards the rest. What one identity waits for keeps no other waiting.
	mu      sync.Mutex
	caches  map[bool]cache.Cache
	started map[watchedKind]bool
}

// errRefused says that an identity has no permission to watch a kind.
var errRefused = errors.New("no permission to watch it")

// FollowAs is Follow by a watch of another identity. It returns false if that has no permission
// to watch the kind either.
func (w *Watches) FollowAs(ctx context.Context, reader types.NamespacedName, o Object, marked bool, as Identity) (watched bool, err error) {
	w.note(reader, key{o.GroupKind(), o.NamespacedName})
	id := w.join(ctx, reader, as.NamespacedName)
	id.mu.Lock()
	defer id.mu.Unlock()
	kind := watchedKind{o.GroupVersionKind, marked}
	switch {
	case id.started[kind]:
		return true, nil
	case w.refusalOf(reader, refusedKind{kind, true}) != nil:
		return false, nil
	}
	if may, err := mayWatchAs(ctx, as, kind); err != nil || !may {
		w.refuse(reader, refusedKind{kind, true}, errRefused)
		return false, err
	}
	metadata, err := w.cacheOf(id, as, marked)
	if err != nil {
		return false, err
	}
	w.starting.Lock()
	c := w.controller
	w.starting.Unlock()
	if err := w.start(ctx, c, metadata, kind); err != nil {
		return false, err
	}
	id.started[kind] = true
	return true, nil
}

// join makes a reader one of an identity's.
func (w *Watches) join(ctx context.Context, reader, as types.NamespacedName) *identity {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := w.identities[as]
	if id == nil {
		id = &identity{readers: map[types.NamespacedName]bool{}, caches: map[bool]cache.Cache{}, started: map[watchedKind]bool{}}
		id.ctx, id.stop = context.WithCancel(context.WithoutCancel(ctx)) // it outlives the pass
		w.identities[as] = id
	}
	id.readers[reader] = true
	if r := w.reads[reader]; r != nil {
		r.readsAs[as] = true
	}
	return id
}

// leave ends the watches of an identity with its last reader.
func (w *Watches) leave(reader, as types.NamespacedName) {
	id := w.identities[as]
	if id == nil {
		return
	}
	if delete(id.readers, reader); len(id.readers) == 0 {
		id.stop()
		delete(w.identities, as)
	}
}

// stopIdentities ends all watches of identities with the manager.
func (w *Watches) stopIdentities(ctx context.Context) error {
	<-ctx.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range w.identities {
		id.stop()
	}
	clear(w.identities)
	return nil
}

func (w *Watches) cacheOf(id *identity, as Identity, marked bool) (cache.Cache, error) {
	if c := id.caches[marked]; c != nil {
		return c, nil
	}
	var o cache.Options
	if !marked {
		o.DefaultLabelSelector = labels.Everything()
	}
	c, err := w.make(as, o)
	if err != nil {
		return nil, fmt.Errorf("make a cache of metadata: %w", err)
	}
	go func() { _ = c.Start(id.ctx) }() // it ends with its context
	id.caches[marked] = c
	return c, nil
}

// mayWatchAs asks, because a watch that is forbidden is retried without an error.
func mayWatchAs(ctx context.Context, as Identity, kind watchedKind) (bool, error) {
	mapping, err := as.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return false, err //nolint:wrapcheck // the caller knows what it means
	}
	namespace := as.Namespace
	if mapping.Scope.Name() == apimeta.RESTScopeNameRoot {
		namespace = ""
	}
	for _, verb := range []string{"list", "watch"} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: mapping.Resource.Group, Resource: mapping.Resource.Resource,
		}}}
		switch err := as.Client.Create(ctx, review); { //nolint:forbidigo // it asks, and writes nothing
		case apierrors.IsForbidden(err):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("ask for permission to watch %s: %w", kind.Kind, err)
		case !review.Status.Allowed:
			return false, nil
		}
	}
	return true, nil
}
