package plans

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

const (
	// looksParallel bounds how often a decision may ask to look at more.
	looksParallel = 100
	// versionsKept is how many OperatorVersions are kept in memory as they were
	// last read, so that their content is read only when it has changed.
	versionsKept = 256
)

// follower is told of each object before it is looked at, so that the Instance is
// looked at again when the object changes.
type follower interface {
	// follow follows an object: marked ones carry the label of what plans apply.
	follow(ctx context.Context, instance types.NamespacedName, ref Ref, marked bool) error
	// begin and end enclose the looks of a pass; what was not looked at in it is
	// not followed any more.
	begin(instance types.NamespacedName)
	end(instance types.NamespacedName)
	forget(instance types.NamespacedName)
}

// observer makes all the reads. Instances come from the cache, which has seen the
// ring's own writes; everything else from the API server, so that no view of it
// is older than that of the Instance. Watches only say when to look.
type observer struct {
	options   Options
	instances client.Reader
	live      client.Reader
	mapper    apimeta.RESTMapper
	follower  follower
	versions  *lru.Cache

	mu       sync.Mutex
	refusals map[types.NamespacedName]map[Ref]Refusal
}

func newObserver(mgr ctrl.Manager, o Options, f follower) *observer {
	return &observer{
		options: o, instances: mgr.GetClient(), live: mgr.GetAPIReader(), mapper: mgr.GetRESTMapper(), follower: f,
		versions: lru.New(versionsKept), refusals: map[types.NamespacedName]map[Ref]Refusal{},
	}
}

// observe reads the Instance and what it refers to. Without an Instance there is
// nothing.
func (b *observer) observe(ctx context.Context, key types.NamespacedName) (Observed, error) {
	instance := &v1beta1.Instance{}
	if err := b.instances.Get(ctx, key, instance); err != nil {
		return Observed{}, notFound(err, "get Instance")
	}
	o := Observed{
		Now: b.options.Now(), NewUID: uuid.NewUUID(), Instance: instance, PipeImage: b.options.PipeImage,
		Objects: map[Ref]*unstructured.Unstructured{}, Unseen: map[Ref]string{}, Kinds: map[schema.GroupKind]Scope{}, Refusals: b.known(key),
	}
	b.follower.begin(key)
	if err := b.observeVersions(ctx, &o); err != nil {
		return Observed{}, err
	}
	var err error
	if instance.DeletionTimestamp != nil {
		o.NamespaceGoes, err = b.namespaceGoes(ctx, key.Namespace)
	}
	return o, err
}

// observeVersions reads what the spec refers to, what was last applied, and what
// the plan that runs began with.
func (b *observer) observeVersions(ctx context.Context, o *Observed) (err error) {
	i := o.Instance
	if o.Version, err = b.version(ctx, i, &i.Spec); err != nil {
		return err
	}
	switch applied := i.Status.LastAppliedInstanceSpec; {
	case applied == nil:
	case sameVersion(i.Namespace, applied, &i.Spec):
		o.Former = o.Version
	default:
		if o.Former, err = b.version(ctx, i, applied); err != nil {
			return err
		}
	}
	if e := i.Status.Execution; e != nil && e.FinishedAt == nil && (o.Version == nil || o.Version.Hash != e.ContentHash) {
		o.Pinned, err = b.pinned(ctx, i, e)
	}
	return err
}

// notFound is nil for what is not there.
func notFound(err error, what string) error {
	if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// keptVersion is an OperatorVersion as it was at some resourceVersion.
type keptVersion struct {
	resourceVersion string
	version         *Version
}

// version reads an OperatorVersion; its content only if it is not known already.
func (b *observer) version(ctx context.Context, i *v1beta1.Instance, spec *v1beta1.InstanceSpec) (*Version, error) {
	key := versionKey(i.Namespace, spec)
	if key.Name == "" {
		return nil, nil //nolint:nilnil // none is a common answer
	}
	gvk := v1beta1.GroupVersion.WithKind("OperatorVersion")
	ref := Ref{GroupVersionKind: gvk, Namespace: key.Namespace, Name: key.Name}
	if err := b.follower.follow(ctx, client.ObjectKeyFromObject(i), ref, false); err != nil {
		return nil, err
	}
	head := &metav1.PartialObjectMetadata{}
	head.SetGroupVersionKind(gvk)
	if err := b.live.Get(ctx, key, head); err != nil {
		return nil, notFound(err, "look at "+ref.String())
	}
	if kept, ok := b.versions.Get(key); ok {
		if k, ok := kept.(keptVersion); ok && k.resourceVersion == head.ResourceVersion && k.version.UID == head.UID {
			return k.version, nil
		}
	}
	ov := &v1beta1.OperatorVersion{}
	if err := b.live.Get(ctx, key, ov); err != nil {
		return nil, notFound(err, "get "+ref.String())
	}
	v := newVersion(ov)
	b.versions.Add(key, keptVersion{ov.ResourceVersion, v})
	return v, nil
}

func newVersion(ov *v1beta1.OperatorVersion) *Version {
	return &Version{
		Namespace: ov.Namespace, Name: ov.Name, UID: ov.UID, Hash: ContentHash(&ov.Spec), Spec: &ov.Spec,
		KeepsAll: vocabulary.Prune.Get(ov.Annotations) == "false",
	}
}

func pinKey(namespace string, e *v1beta1.Execution) types.NamespacedName {
	return types.NamespacedName{Namespace: versionNamespace(namespace, &e.Spec), Name: PinName(e.Spec.OperatorVersion.Name, e.ContentHash)}
}

// pinned reads the content with which a plan began. It never changes.
func (b *observer) pinned(ctx context.Context, i *v1beta1.Instance, e *v1beta1.Execution) (*Version, error) {
	key := pinKey(i.Namespace, e)
	revision := &appsv1.ControllerRevision{}
	if err := b.live.Get(ctx, key, revision); err != nil {
		return nil, notFound(err, "get ControllerRevision "+key.Name)
	}
	spec := &v1beta1.OperatorVersionSpec{}
	if err := json.Unmarshal(revision.Data.Raw, spec); err != nil || ContentHash(spec) != e.ContentHash {
		return nil, nil //nolint:nilnil,nilerr // what is not the content is none
	}
	return &Version{
		Namespace: key.Namespace, Name: e.Spec.OperatorVersion.Name, Hash: e.ContentHash, Spec: spec,
		KeepsAll: vocabulary.Prune.Get(revision.Annotations) == "false",
	}, nil
}

func (b *observer) namespaceGoes(ctx context.Context, name string) (bool, error) {
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	err := b.live.Get(ctx, client.ObjectKey{Name: name}, ns)
	if apierrors.IsForbidden(err) {
		return false, nil // what cannot be seen is seen when something is refused
	}
	return ns.DeletionTimestamp != nil, notFoundOrNil(err, "get Namespace")
}

func notFoundOrNil(err error, what string) error {
	if err == nil {
		return nil
	}
	return notFound(err, what)
}

// decide decides, and looks at all that is needed for it.
func (b *observer) decide(ctx context.Context, o *Observed) (Plan, error) {
	key := client.ObjectKeyFromObject(o.Instance)
	for range looksParallel {
		p := Decide(*o)
		if p.Needs.IsEmpty() {
			b.follower.end(key)
			return p, nil
		}
		if err := b.look(ctx, key, o, p.Needs); err != nil {
			return Plan{}, err
		}
	}
	return Plan{}, errors.New("it never has all that it needs")
}

func (b *observer) look(ctx context.Context, key types.NamespacedName, o *Observed, needs Needs) error {
	for _, gvk := range needs.Kinds {
		scope, err := b.scope(gvk)
		if err != nil {
			return err
		}
		o.Kinds[gvk.GroupKind()] = scope
	}
	for _, ref := range needs.Objects {
		u, err := b.object(ctx, key, ref)
		switch {
		case apierrors.IsForbidden(err):
			o.Unseen[ref] = fmt.Sprintf("%s may not be looked at (%s); grant it by a ClusterRole with label %s=true, or by spillway install --package-kinds",
				ref, err, vocabulary.PackagePermissions)
		case err != nil:
			return err
		default:
			o.Objects[ref] = u
		}
	}
	return nil
}

func (b *observer) scope(gvk schema.GroupVersionKind) (Scope, error) {
	mapping, err := b.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	switch {
	case apimeta.IsNoMatchError(err):
		return NoSuchKind, nil
	case err != nil:
		return 0, fmt.Errorf("look for the kind %s: %w", gvk.Kind, err)
	case mapping.Scope.Name() == apimeta.RESTScopeNameRoot:
		return ClusterScoped, nil
	default:
		return Namespaced, nil
	}
}

// object reads an object and follows it. One that carries no label of ours is
// followed by another watch, and then read again.
func (b *observer) object(ctx context.Context, key types.NamespacedName, ref Ref) (*unstructured.Unstructured, error) {
	u, err := b.followed(ctx, key, ref, isMarkedKind(ref))
	if err != nil || u == nil || !isMarkedKind(ref) || u.GetLabels()[vocabulary.Heritage] == vocabulary.HeritageOf {
		return u, err
	}
	return b.followed(ctx, key, ref, false)
}

func (b *observer) followed(ctx context.Context, key types.NamespacedName, ref Ref, marked bool) (*unstructured.Unstructured, error) {
	if err := b.follower.follow(ctx, key, ref, marked); err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(ref.GroupVersionKind)
	if err := b.live.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, u); err != nil {
		return nil, notFound(err, "get "+ref.String())
	}
	return u, nil
}

// isMarkedKind is true of kinds whose objects carry the label if they are ours. Of
// the ring's own kinds those of others matter as well.
func isMarkedKind(ref Ref) bool {
	return ref.Group != v1beta1.GroupVersion.Group && ref.Group != groupKind.Group
}

// known are the refusals that are remembered of an Instance.
func (b *observer) known(key types.NamespacedName) map[Ref]Refusal {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.refusals[key])
}

// learn remembers what was refused, until something is written to the same object.
func (b *observer) learn(key types.NamespacedName, d *deeds) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, out := range d.outcomes {
		if out.refusal == nil {
			delete(b.refusals[key], out.write.Ref)
			continue
		}
		if b.refusals[key] == nil {
			b.refusals[key] = map[Ref]Refusal{}
		}
		b.refusals[key][out.write.Ref] = *out.refusal
	}
}

// forget forgets an Instance that is gone.
func (b *observer) forget(key types.NamespacedName) {
	b.follower.forget(key)
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.refusals, key)
}
