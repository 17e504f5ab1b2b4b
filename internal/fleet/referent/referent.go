package referent

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spillway-dev/spillway/internal/fleet/binding"
	"github.com/spillway-dev/spillway/internal/kube"
)

// watchTimeout is how long a watch may take to begin.
const watchTimeout = 20 * time.Second

// Reader reads objects for one controller. It is safe for concurrent use.
type Reader struct {
	live   client.Reader
	mapper apimeta.RESTMapper
	cache  cache.Cache
	// namespaces are those that are watched; the empty one is all of them.
	namespaces []string

	// starting guards controller and started.
	starting   sync.Mutex
	controller controller.Controller
	started    map[schema.GroupVersionKind]bool

	mu      sync.Mutex
	seekers map[object]map[types.NamespacedName]bool
	sought  map[types.NamespacedName]map[object]bool
}

// object is what a watch tells of.
type object struct {
	kind schema.GroupKind
	types.NamespacedName
}

// New returns a reader of objects in some namespaces, all if none are named. It runs
// with the manager.
func New(mgr ctrl.Manager, namespaces []string) (*Reader, error) {
	r := &Reader{
		live: mgr.GetAPIReader(), mapper: mgr.GetRESTMapper(), started: map[schema.GroupVersionKind]bool{},
		seekers: map[object]map[types.NamespacedName]bool{}, sought: map[types.NamespacedName]map[object]bool{},
	}
	if r.namespaces = namespaces; len(namespaces) == 0 {
		r.namespaces = []string{metav1.NamespaceAll}
	}
	o := cache.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultTransform: kube.Identify}
	for _, namespace := range namespaces {
		if o.DefaultNamespaces == nil {
			o.DefaultNamespaces = map[string]cache.Config{}
		}
		o.DefaultNamespaces[namespace] = cache.Config{}
	}
	var err error
	if r.cache, err = cache.New(mgr.GetConfig(), o); err != nil {
		return nil, fmt.Errorf("make a cache of metadata: %w", err)
	}
	if err := mgr.Add(r.cache); err != nil {
		return nil, fmt.Errorf("run a cache of metadata: %w", err)
	}
	return r, nil
}

// Build sets the controller that is woken: the one that build returns. It may run
// before build does.
func (r *Reader) Build(build func() (controller.Controller, error)) error {
	r.starting.Lock()
	defer r.starting.Unlock()
	var err error
	r.controller, err = build()
	return err
}

// Follow has a seeker woken from now on when one of these objects changes that were
// looked at for it, and by no other.
func (r *Reader) Follow(seeker types.NamespacedName, known binding.Known) {
	r.mu.Lock()
	defer r.mu.Unlock()
	former := r.sought[seeker]
	now := map[object]bool{}
	for o := range known {
		now[objectOf(seeker.Namespace, o)] = true
	}
	for o := range former {
		if !now[o] {
			r.unfollow(seeker, o)
		}
	}
	if len(now) == 0 {
		delete(r.sought, seeker)
		return
	}
	r.sought[seeker] = now
}

func (r *Reader) unfollow(seeker types.NamespacedName, o object) {
	delete(r.seekers[o], seeker)
	if len(r.seekers[o]) == 0 {
		delete(r.seekers, o)
	}
}

// Forget forgets a seeker that is gone.
func (r *Reader) Forget(seeker types.NamespacedName) { r.Follow(seeker, nil) }

func objectOf(namespace string, o binding.Object) object {
	gvk := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
	return object{gvk.GroupKind(), types.NamespacedName{Namespace: namespace, Name: o.Name}}
}

// note has the seeker woken while it looks.
func (r *Reader) note(seeker types.NamespacedName, o object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seekers[o] == nil {
		r.seekers[o] = map[types.NamespacedName]bool{}
	}
	r.seekers[o][seeker] = true
	if r.sought[seeker] == nil {
		r.sought[seeker] = map[object]bool{}
	}
	r.sought[seeker][o] = true
}

// Look reads an object in the namespace of the seeker, and has it woken when the
// object changes.
func (r *Reader) Look(ctx context.Context, seeker types.NamespacedName, o binding.Object) (binding.Look, error) {
	gvk, refused, err := r.kind(o)
	if err != nil || refused != "" {
		return binding.Look{Refused: refused}, err
	}
	r.note(seeker, objectOf(seeker.Namespace, o))
	if err := r.watch(ctx, gvk); err != nil {
		return refusedOr(err, "watch "+o.Kind)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	err = r.live.Get(ctx, client.ObjectKey{Namespace: seeker.Namespace, Name: o.Name}, u)
	switch {
	case apierrors.IsNotFound(err):
		return binding.Look{}, nil
	case err != nil:
		return refusedOr(err, "get "+o.String())
	default:
		return binding.Look{Content: u.Object}, nil
	}
}

func refusedOr(err error, what string) (binding.Look, error) {
	if apierrors.IsForbidden(err) {
		return binding.Look{Refused: "may not be read by the manager; grant it to get, list and watch them"}, nil
	}
	return binding.Look{}, fmt.Errorf("%s: %w", what, err)
}

// kind is the kind of an object that may be bound; refused says why it may not.
func (r *Reader) kind(o binding.Object) (gvk schema.GroupVersionKind, refused string, err error) {
	gv, err := schema.ParseGroupVersion(o.APIVersion)
	if err != nil {
		return gvk, fmt.Sprintf("has the invalid apiVersion %q", o.APIVersion), nil //nolint:nilerr // the author of the binding must fix it
	}
	gvk = gv.WithKind(o.Kind)
	if gv.Group == "" && o.Kind == "Secret" {
		return gvk, "cannot be bound: bound values are visible in plain text", nil
	}
	mapping, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	switch {
	case apimeta.IsNoMatchError(err):
		return gvk, fmt.Sprintf("is of a kind that is not installed (%s in %s)", o.Kind, o.APIVersion), nil
	case err != nil:
		return gvk, "", fmt.Errorf("look for the kind %s: %w", o.Kind, err)
	case mapping.Scope.Name() == apimeta.RESTScopeNameRoot:
		return gvk, "is in no namespace; only what is in the same namespace can be bound", nil
	default:
		return gvk, "", nil
	}
}

// watch begins to watch a kind, and returns once it is watched.
func (r *Reader) watch(ctx context.Context, gvk schema.GroupVersionKind) error {
	r.starting.Lock()
	defer r.starting.Unlock()
	if r.started[gvk] {
		return nil
	}
	if err := r.mayWatch(ctx, gvk); err != nil {
		return err
	}
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(gvk)
	watched := source.Kind(r.cache, client.Object(m), handler.EnqueueRequestsFromMapFunc(r.toSeekers(gvk.GroupKind())))
	if err := r.controller.Watch(watched); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	if err := watched.WaitForSync(ctx); err != nil {
		return fmt.Errorf("wait for the watch: %w", err)
	}
	r.started[gvk] = true
	return nil
}

// mayWatch asks for the permission in the only way that tells: by a list.
func (r *Reader) mayWatch(ctx context.Context, gvk schema.GroupVersionKind) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	for _, namespace := range r.namespaces {
		if err := r.live.List(ctx, list, client.Limit(1), client.InNamespace(namespace)); err != nil {
			return err //nolint:wrapcheck // the caller says what it is about
		}
	}
	return nil
}

func (r *Reader) toSeekers(kind schema.GroupKind) handler.MapFunc {
	return func(_ context.Context, obj client.Object) []reconcile.Request {
		r.mu.Lock()
		defer r.mu.Unlock()
		var requests []reconcile.Request
		for seeker := range maps.Keys(r.seekers[object{kind, client.ObjectKeyFromObject(obj)}]) {
			requests = append(requests, reconcile.Request{NamespacedName: seeker})
		}
		return requests
	}
}
