package plans

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"
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
	"github.com/spillway-dev/spillway/internal/gates/ask"
	"github.com/spillway-dev/spillway/internal/plans/account"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/decision"
	"github.com/spillway-dev/spillway/internal/plans/definition"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/watch"
)

// snapshot is one Instance and what its decision depends on, with the decision itself:
// that says what it depends on.
type snapshot struct {
	decision.Snapshot

	decision decision.Decision
	// answers are what needs no read; kept are objects that need none while their watches
	// show the same version.
	answers answers
	kept    map[object.Ref]*unstructured.Unstructured
	// shown is true if an OperatorVersion is the one that its watch shows, which may be older than the Instance.
	shown bool
	// heads are those of the last pass: they need no read while their watches show the same version.
	heads map[object.Ref]*task.Head
	// rights are how the objects of the plans are read and written.
	rights account.Rights
	// hasPin is true if the content that the execution begins with is kept already.
	hasPin bool
}

// follower starts to watch each object before it is read, so that the Instance is
// reconciled when the object changes.
type follower interface {
	// Follow watches an object: marked ones carry the label of what plans apply.
	Follow(ctx context.Context, instance types.NamespacedName, o watch.Object, marked bool) error
	// FollowAs does so as an account, and returns false if that must not watch the kind.
	FollowAs(ctx context.Context, instance types.NamespacedName, o watch.Object, marked bool, as watch.Identity) (watched bool, err error)
	// Shows is true if the watch of a followed object shows this version of it.
	Shows(ctx context.Context, o watch.Object, marked bool, uid types.UID, resourceVersion string) bool
	// Begin and End enclose the reads of a pass; what was not read in it is no longer
	// watched.
	Begin(instance types.NamespacedName)
	End(instance types.NamespacedName)
	Forget(instance types.NamespacedName)
}

// observer makes all the reads. Instances and their RolloutGates come from the cache, which has seen the
// ring's own writes; everything else from the API server, so that nothing is older
// than the Instance. Watches only say when to read: they keep the names and versions of objects, and
// no answer contains more than the account of the Instance may read.
type observer struct {
	options   Options
	instances client.Reader
	live      client.Reader
	mapper    apimeta.RESTMapper
	follower  follower
	// accounts returns the rights of an account.
	accounts func(account.Account) (account.Rights, error)
	versions *lru.Cache
	reading  singleflight.Group
	// noGates is true if RolloutGates are not installed.
	noGates bool
}

func newObserver(mgr ctrl.Manager, o Options, f follower, accounts func(account.Account) (account.Rights, error)) *observer {
	return &observer{
		options: o, instances: mgr.GetClient(), live: mgr.GetAPIReader(), mapper: mgr.GetRESTMapper(), follower: f, accounts: accounts,
		versions: lru.New(versionsKept),
	}
}

// observe reads the Instance, what it refers to, and all that the decision needs. If the
// Instance does not exist, the snapshot is empty.
func (b *observer) observe(ctx context.Context, key types.NamespacedName, m *memory) (snapshot, error) {
	s, err := b.observeInstance(ctx, key, m)
	if err != nil || s.Instance == nil {
		return s, err
	}
	for range maxReads {
		s.decision = decision.Decide(&s.Snapshot)
		var err error
		switch {
		case s.shown && (s.decision.Pin != nil || s.decision.MayPin != nil):
			err = b.observeVersions(ctx, &s, b.readVersion) // an execution begins with the newest content
		case s.decision.Needs.IsEmpty():
			b.follower.End(key)
			return s, nil
		default:
			err = b.read(ctx, key, &s, s.decision.Needs)
		}
		if err != nil {
			return s, err
		}
	}
	return s, errors.New("the decision needs too many reads")
}

func (b *observer) observeInstance(ctx context.Context, key types.NamespacedName, m *memory) (snapshot, error) {
	instance := &v1beta1.Instance{}
	if err := b.instances.Get(ctx, key, instance); err != nil {
		return snapshot{}, ignoreNotFound(err, "get Instance")
	}
	m.rendered = m.rendered.Next()
	as := account.Of(instance, b.options.DefaultServiceAccount)
	m.actsAs(as)
	answered := m.answers.to(instance)
	s := snapshot{heads: m.heads, answers: answered, kept: m.kept.of(instance), Snapshot: decision.Snapshot{
		Snapshot: task.Snapshot{
			Instance: instance, Objects: map[object.Ref]*unstructured.Unstructured{}, Heads: map[object.Ref]*task.Head{}, Forbidden: map[object.Ref]string{}, Impossible: map[object.Ref]string{},
			Kinds: map[schema.GroupVersionKind]object.Scope{}, Served: map[schema.GroupKind][]string{}, Definitions: map[string]definition.Result{}, Refusals: maps.Clone(m.refusals), PipeImage: b.options.PipeImage, Rendered: m.rendered,
		},
		Contents: map[string]*choice.Version{}, Answered: answered.objects,
		Now: b.options.Now(), By: b.options.By, NewUID: uuid.NewUUID(), Account: as,
	}}
	var err error
	if s.rights, err = b.accounts(s.Account); err != nil {
		return snapshot{}, err
	}
	if !b.noGates {
		gates, err := ask.List(ctx, b.instances, key.Namespace, instance.UID)
		if err != nil {
			return snapshot{}, err
		}
		s.Gates = gates
	}
	b.follower.Begin(key)
	if err := b.observeVersions(ctx, &s, b.shownVersion); err != nil {
		return snapshot{}, err
	}
	if instance.DeletionTimestamp == nil {
		return s, nil
	}
	goes, err := b.namespaceGoes(ctx, key.Namespace)
	if err != nil {
		return snapshot{}, err
	}
	s.NamespaceGoes = goes
	return s, nil
}

// observeVersions reads the OperatorVersion of the spec, the one that was last applied,
// and the content that the running plan began with.
func (b *observer) observeVersions(ctx context.Context, s *snapshot, read versionReader) (err error) {
	i := s.Instance
	s.shown, s.Former = false, nil
	if s.Version, err = b.version(ctx, s, &i.Spec, read); err != nil {
		return err
	}
	switch applied := i.Status.LastAppliedInstanceSpec; {
	case applied == nil:
	case choice.VersionKey(i.Namespace, applied) == choice.VersionKey(i.Namespace, &i.Spec):
		s.Former = s.Version
	default:
		if s.Former, err = b.version(ctx, s, applied, read); err != nil {
			return err
		}
	}
	if e := i.Status.Running(); e != nil && (s.Version == nil || s.Version.Hash != e.ContentHash) {
		s.Pinned, err = b.pinned(ctx, i, e)
	}
	return err
}

// readOnce is an OperatorVersion as it was at a resourceVersion.
type readOnce struct {
	metadata metav1.ObjectMeta
	version  *choice.Version
}

// version is an OperatorVersion that the Instance may use, which is followed before it is read.
func (b *observer) version(ctx context.Context, s *snapshot, spec *v1beta1.InstanceSpec, read versionReader) (*choice.Version, error) {
	i := s.Instance
	key := choice.VersionKey(i.Namespace, spec)
	if key.Name == "" || object.NameProblem(key.Name) != "" || object.NameProblem(key.Namespace) != "" {
		return nil, nil //nolint:nilnil // none is a common answer
	}
	ref := object.Ref{GroupVersionKind: v1beta1.GroupVersion.WithKind("OperatorVersion"), Namespace: key.Namespace, Name: key.Name}
	if err := b.follow(ctx, client.ObjectKeyFromObject(i), ref, false); err != nil {
		return nil, err
	}
	found, err := read(ctx, s, ref)
	if found == nil || !choice.MayUse(i.Namespace, &found.metadata) {
		return nil, err // one that it may not use says no more than if there were none
	}
	return found.version, nil
}

// versionReader reads an OperatorVersion: nil is none.
type versionReader func(context.Context, *snapshot, object.Ref) (*readOnce, error)

// shownVersion is an OperatorVersion as its watch shows it, if that was read before. What many Instances
// ask for at a time, as when a manager starts, is read once.
func (b *observer) shownVersion(ctx context.Context, s *snapshot, ref object.Ref) (*readOnce, error) {
	if known, ok := b.versions.Get(ref); ok {
		r := known.(*readOnce) //nolint:forcetypeassert // nothing else is added
		if !b.follower.Shows(ctx, watched(ref), false, r.metadata.UID, r.metadata.ResourceVersion) {
			return b.readVersion(ctx, s, ref)
		}
		s.shown = true
		return r, nil
	}
	r, err, shared := b.reading.Do(watched(ref).NamespacedName.String(), func() (any, error) { return b.readContent(ctx, ref) })
	s.shown = s.shown || shared // it may have begun before the Instance was seen
	return r.(*readOnce), err   //nolint:forcetypeassert,wrapcheck // that is what is returned above
}

// readVersion reads an OperatorVersion; of one that was read before the content only if it has changed.
func (b *observer) readVersion(ctx context.Context, _ *snapshot, ref object.Ref) (*readOnce, error) {
	if known, ok := b.versions.Get(ref); ok {
		head := &metav1.PartialObjectMetadata{}
		head.SetGroupVersionKind(ref.GroupVersionKind)
		if err := b.live.Get(ctx, watched(ref).NamespacedName, head); err != nil {
			return nil, ignoreNotFound(err, "get the metadata of "+ref.String())
		}
		if r := known.(*readOnce); r.metadata.UID == head.UID && r.metadata.ResourceVersion == head.ResourceVersion { //nolint:forcetypeassert // nothing else is added
			return r, nil
		}
	}
	return b.readContent(ctx, ref)
}

func (b *observer) readContent(ctx context.Context, ref object.Ref) (*readOnce, error) {
	ov := &v1beta1.OperatorVersion{}
	if err := b.live.Get(ctx, watched(ref).NamespacedName, ov); err != nil {
		return nil, ignoreNotFound(err, "get "+ref.String())
	}
	r := &readOnce{ov.ObjectMeta, choice.NewVersion(ov)}
	r.metadata.ManagedFields = nil
	b.versions.Add(ref, r)
	return r, nil
}

// isPinned is true if the content that an execution begins with is kept. If that cannot be
// read, keeping it says why.
func (b *observer) isPinned(ctx context.Context, i *v1beta1.Instance, v *choice.Version) bool {
	revision := &metav1.PartialObjectMetadata{}
	revision.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ControllerRevision"))
	return b.live.Get(ctx, choice.PinKey(i, &i.Spec, v.Hash), revision) == nil
}

// pinned reads the content that a plan began with. It never changes.
func (b *observer) pinned(ctx context.Context, i *v1beta1.Instance, e *v1beta1.Execution) (*choice.Version, error) {
	key := choice.PinKey(i, &e.Spec, e.ContentHash)
	revision := &appsv1.ControllerRevision{}
	if err := b.live.Get(ctx, key, revision); err != nil {
		return nil, ignoreNotFound(err, "get ControllerRevision "+key.Name)
	}
	spec := &v1beta1.OperatorVersionSpec{}
	if err := json.Unmarshal(revision.Data.Raw, spec); err != nil || choice.ContentHash(spec) != e.ContentHash {
		return nil, nil //nolint:nilnil,nilerr // other content is none
	}
	return &choice.Version{
		Namespace: choice.VersionKey(i.Namespace, &e.Spec).Namespace, Name: e.Spec.OperatorVersion.Name, Hash: e.ContentHash, Spec: spec,
		KeepsAll: vocabulary.Prune.Get(revision.Annotations) == "false",
	}, nil
}

func (b *observer) namespaceGoes(ctx context.Context, name string) (bool, error) {
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	err := b.live.Get(ctx, client.ObjectKey{Name: name}, ns)
	switch {
	case apierrors.IsForbidden(err):
		return false, nil // then the API server refuses the writes of the cleanup
	case err != nil:
		return false, ignoreNotFound(err, "get Namespace")
	default:
		return ns.DeletionTimestamp != nil, nil
	}
}

func (b *observer) read(ctx context.Context, key types.NamespacedName, s *snapshot, needs task.Needs) error {
	for _, gvk := range needs.Kinds {
		scope, err := b.scope(gvk)
		if err != nil {
			return err
		}
		if s.Kinds[gvk] = scope; scope == object.NoSuchKind {
			s.Served[gvk.GroupKind()] = b.served(gvk.GroupKind())
		}
	}
	for hash, spec := range needs.Contents {
		var err error
		if s.Contents[hash], err = b.pinned(ctx, s.Instance, &v1beta1.Execution{Spec: spec, ContentHash: hash}); err != nil {
			return err
		}
	}
	if err := b.readHeads(ctx, s, needs.Heads); err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(atOnce)
	if pin := s.decision.MayPin; pin != nil && len(needs.Objects) > 0 && !s.hasPin {
		group.Go(func() error { s.hasPin = b.isPinned(ctx, s.Instance, pin); return nil })
	}
	err := readAll(s, &group, needs.Objects, s.Objects, func(ref object.Ref, unwatched *bool) (*unstructured.Unstructured, error) {
		return b.object(ctx, key, ref, s, unwatched)
	})
	if err != nil {
		return err
	}
	return b.checkDefinitions(ctx, s, needs.Definitions)
}

// readAll reads what is needed of objects, several at a time, and what else the group has begun. What must not, or
// cannot, be read is noted.
func readAll[T any](s *snapshot, group *errgroup.Group, refs []object.Ref, into map[object.Ref]T, read func(ref object.Ref, unwatched *bool) (T, error)) error {
	found, unwatched, errs := make([]T, len(refs)), make([]bool, len(refs)), make([]error, len(refs))
	for i, ref := range refs {
		group.Go(func() error {
			found[i], errs[i] = read(ref, &unwatched[i])
			return nil
		})
	}
	_ = group.Wait() // the errors are beside what was found
	s.Unwatched = s.Unwatched || slices.Contains(unwatched, true)
	for i, ref := range refs {
		switch err := errs[i]; {
		case apierrors.IsForbidden(err):
			s.Forbidden[ref] = forbidden(s.Account, ref, err)
		case apierrors.IsMethodNotSupported(err):
			s.Impossible[ref] = fmt.Sprintf("%s: kind: objects of kind %s cannot be read; remove it", ref, ref.Kind)
		case err != nil:
			return err
		default:
			into[ref] = found[i]
		}
	}
	return nil
}

// checkDefinitions says what the changes of CustomResourceDefinitions would break, as the account
// reads it. One that may not read it must not change them; to the manager packages have granted
// what they apply, and nothing to read what others made of it.
func (b *observer) checkDefinitions(ctx context.Context, s *snapshot, changes map[string]definition.Change) error {
	for sent, change := range changes {
		if s.Account.IsManager() {
			change.Namespace = s.Instance.Namespace
		}
		result, err := change.Check(ctx, s.rights.Live)
		if err != nil {
			return err
		}
		if why, ok := account.Denied(s.Account, result.Forbidden); ok {
			ref := object.RefOf(change.Live)
			s.Forbidden[ref] = fmt.Sprintf("cannot tell what a change of %s breaks: %s", ref, why)
		}
		s.Definitions[sent] = result
	}
	return nil
}

// forbidden says which permission is missing to read an object, and how to grant it.
func forbidden(as account.Account, ref object.Ref, err error) string {
	if why, ok := account.Denied(as, err); ok {
		return "no permission to read " + ref.String() + ": " + why
	}
	return fmt.Sprintf("no permission to read %s (%s); grant it by a ClusterRole with label %s=true, or by spillway install --package-kinds",
		ref, err, vocabulary.PackagePermissions)
}

func (b *observer) scope(gvk schema.GroupVersionKind) (object.Scope, error) {
	mapping, err := b.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	switch {
	case apimeta.IsNoMatchError(err):
		return object.NoSuchKind, nil
	case err != nil:
		return 0, fmt.Errorf("find the kind %s: %w", gvk.Kind, err)
	case mapping.Scope.Name() == apimeta.RESTScopeNameRoot:
		return object.ClusterScoped, nil
	default:
		return object.Namespaced, nil
	}
}

// served are the versions in which the API server serves a kind.
func (b *observer) served(kind schema.GroupKind) []string {
	mappings, err := b.mapper.RESTMappings(kind)
	if err != nil {
		return nil // then there is no advice to give
	}
	var versions []string
	for _, m := range mappings {
		versions = append(versions, m.GroupVersionKind.GroupVersion().String())
	}
	slices.Sort(versions)
	return slices.Compact(versions)
}

// object reads an object after it has started to watch it, unless the API server has just
// answered with it, or it is kept. An object without the label of what plans apply needs
// another watch, and is then read again. No object has a name that no request can have.
func (b *observer) object(ctx context.Context, key types.NamespacedName, ref object.Ref, s *snapshot, unwatched *bool) (*unstructured.Unstructured, error) {
	if ref.Problem() != "" {
		return nil, nil //nolint:nilnil // it does not exist
	}
	if answer := s.answers.objects[ref]; answer != nil && isMarked(ref, answer) {
		return answer, b.followAs(ctx, s, ref, true, unwatched)
	}
	if kept := s.kept[ref]; kept != nil && b.follower.Shows(ctx, watched(ref), true, kept.GetUID(), kept.GetResourceVersion()) {
		return kept, b.follow(ctx, key, ref, true)
	}
	marked := isMarkedKind(ref) && !isSource(s.Instance, ref)
	u, err := b.followed(ctx, s, ref, marked, unwatched)
	if err != nil || u == nil || !marked || isMarked(ref, u) {
		return u, err
	}
	return b.followed(ctx, s, ref, false, unwatched)
}

// readHeads reads the metadata of objects that are compared with what was applied.
func (b *observer) readHeads(ctx context.Context, s *snapshot, refs []object.Ref) error {
	var group errgroup.Group
	group.SetLimit(atOnce)
	return readAll(s, &group, refs, s.Heads, func(ref object.Ref, unwatched *bool) (*task.Head, error) {
		return b.head(ctx, s, ref, unwatched)
	})
}

// head is the head of an object, nil if it does not exist: the one of the last pass, if its watch shows the same
// version.
func (b *observer) head(ctx context.Context, s *snapshot, ref object.Ref, unwatched *bool) (*task.Head, error) {
	for _, marked := range []bool{isMarkedKind(ref), false} {
		if err := b.followAs(ctx, s, ref, marked, unwatched); err != nil {
			return nil, err
		}
		if h := s.heads[ref]; h != nil && b.follower.Shows(ctx, watched(ref), marked, h.UID, h.ResourceVersion) {
			return h, nil
		}
		u := &metav1.PartialObjectMetadata{}
		u.SetGroupVersionKind(ref.GroupVersionKind)
		if err := s.rights.Live.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, u); err != nil {
			return nil, ignoreNotFound(err, "get the metadata of "+ref.String())
		}
		if !marked || u.Labels[vocabulary.Heritage] == vocabulary.HeritageOf {
			return task.HeadOf(u, s.Instance.Name), nil
		}
	}
	return nil, nil //nolint:nilnil // the second read returns
}

// isMarked is true of an object that is watched as one that plans have applied.
func isMarked(ref object.Ref, u *unstructured.Unstructured) bool {
	return isMarkedKind(ref) && u.GetLabels()[vocabulary.Heritage] == vocabulary.HeritageOf
}

// isMarkedKind is true of kinds whose objects carry the label if plans apply them. Of
// Spillway's own kinds the objects of other clients matter as well.
func isMarkedKind(ref object.Ref) bool {
	return ref.Group != v1beta1.GroupVersion.Group && ref.Group != task.GroupKind.Group
}

// isSource reports whether a parameter of the Instance has its value in the object: that is a user's.
func isSource(i *v1beta1.Instance, ref object.Ref) bool {
	return ref.GroupKind() == object.SecretKind && slices.ContainsFunc(i.Spec.ParametersFrom, func(p v1beta1.ParameterSource) bool { return p.SecretKeyRef.Name == ref.Name })
}

// followed reads an object as the account of the Instance.
func (b *observer) followed(ctx context.Context, s *snapshot, ref object.Ref, marked bool, unwatched *bool) (*unstructured.Unstructured, error) {
	if err := b.followAs(ctx, s, ref, marked, unwatched); err != nil {
		return nil, err
	}
	u, err := get(ctx, s.rights.Live, ref)
	if only := task.Public(ref); apierrors.IsForbidden(err) && !s.Account.IsManager() && only != nil {
		if all, err := get(ctx, b.live, ref); err == nil && all != nil {
			return only(all), nil
		} else if err == nil {
			return nil, nil //nolint:nilnil // it does not exist
		}
	}
	return u, err
}

// get reads an object, nil if it does not exist.
func get(ctx context.Context, live client.Reader, ref object.Ref) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(ref.GroupVersionKind)
	if err := live.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, u); err != nil {
		return nil, ignoreNotFound(err, "get "+ref.String())
	}
	return u, nil
}

// follow has the Instance reconciled when an object changes. A kind that is not installed
// cannot be watched, and has no objects.
func (b *observer) follow(ctx context.Context, instance types.NamespacedName, ref object.Ref, marked bool) error {
	err := b.follower.Follow(ctx, instance, watched(ref), marked)
	if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
		return nil
	}
	return err
}

// followAs is follow for a plan that acts as an account. A watch of the manager only says when
// to read; where the manager must not watch the kind, the account does, and where
// that must not either, the object is read again later.
func (b *observer) followAs(ctx context.Context, s *snapshot, ref object.Ref, marked bool, unwatched *bool) error {
	key := client.ObjectKeyFromObject(s.Instance)
	err := b.follow(ctx, key, ref, marked)
	if !apierrors.IsForbidden(err) || s.Account.IsManager() {
		return err
	}
	is, err := b.follower.FollowAs(ctx, key, watched(ref), marked, watch.Identity{NamespacedName: s.Account.NamespacedName, Config: s.rights.Config, Client: s.rights.Client})
	if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
		return nil
	}
	*unwatched = *unwatched || err == nil && !is
	return err
}

// watched is an object as watches name it.
func watched(ref object.Ref) watch.Object {
	return watch.Object{GroupVersionKind: ref.GroupVersionKind, NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}
}

// ignoreNotFound is nil for an error that says that an object or its kind does not
// exist.
func ignoreNotFound(err error, doing string) error {
	if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
