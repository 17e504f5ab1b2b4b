package apiserver

import (
	"context"
	"fmt"
	"reflect"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Create implements [client.Writer].
func (s *Store) Create(_ context.Context, obj client.Object, opts ...client.CreateOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.kindOf(obj)
	if err != nil {
		return err
	}
	if _, taken := k.objects[client.ObjectKeyFromObject(obj)]; taken && obj.GetName() != "" {
		return apierrors.NewAlreadyExists(k.resource(), obj.GetName())
	}
	made, err := s.stored(k, obj)
	if err != nil {
		return err
	}
	clearStatus(made)
	o := (&client.CreateOptions{}).ApplyOptions(opts)
	if len(o.DryRun) > 0 {
		return s.ready(k, made)
	}
	created, err := s.create(k, made)
	if err != nil {
		return err
	}
	return s.fill(created, obj)
}

// Seed stores an object as it is, with its status and its version, as one that existed
// before. Versions go on from the highest one.
func (s *Store) Seed(obj client.Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.kindOf(obj)
	if err != nil {
		return err
	}
	made, err := s.stored(k, obj)
	if err != nil {
		return err
	}
	s.complete(nil, made)
	version := made.GetResourceVersion()
	s.put(k, k.objects[client.ObjectKeyFromObject(made)], made)
	if number, err := strconv.ParseInt(version, 10, 64); err == nil {
		made.SetResourceVersion(version)
		s.version = max(s.version, number)
	}
	return nil
}

// Update implements [client.Writer].
func (s *Store) Update(_ context.Context, obj client.Object, opts ...client.UpdateOption) error {
	o := (&client.UpdateOptions{}).ApplyOptions(opts)
	return s.update(obj, keepStatus, o.FieldManager)
}

// part is what of an object a write may change.
type part func(before, after client.Object)

// keepStatus is a write of all but the status, keepRest one of the status alone.
func keepStatus(before, after client.Object) { copyStatus(before, after) }

func (s *Store) update(obj client.Object, keep part, manager string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, before, err := s.existing(obj)
	if err != nil {
		return err
	}
	if err := k.checkPreconditions(before, preconditionsOf(obj)); err != nil {
		return err
	}
	after, err := s.stored(k, obj)
	if err != nil {
		return err
	}
	return s.finish(k, before, after, keep, manager, obj)
}

// finish stores what a write has made of an object, and answers with it.
func (s *Store) finish(k *kind, before, after client.Object, keep part, manager string, answer client.Object) error {
	keep(before, after)
	after, err := s.fields.track(s, k, before, after, manager)
	if err != nil {
		return err
	}
	stored, err := s.replace(k, before, after)
	if err != nil {
		return err
	}
	return s.fill(stored, answer)
}

// preconditions are what must hold of an object for a write to be made.
type preconditions struct {
	uid     types.UID
	version string
}

func preconditionsOf(obj client.Object) preconditions {
	return preconditions{obj.GetUID(), obj.GetResourceVersion()}
}

// finalizers are what keeps an object until the garbage collector has seen to it.
var finalizers = map[metav1.DeletionPropagation]string{
	metav1.DeletePropagationForeground: metav1.FinalizerDeleteDependents, metav1.DeletePropagationOrphan: metav1.FinalizerOrphanDependents,
}

// Remove takes away a Pod that was stopped.
func (s *Store) Remove(obj client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.kindOf(obj)
	if err != nil {
		return
	}
	if before := k.objects[client.ObjectKeyFromObject(obj)]; before != nil {
		s.put(k, before, nil)
	}
}

// DeleteAllOf implements [client.Writer].
func (s *Store) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	o := (&client.DeleteAllOfOptions{}).ApplyOptions(opts)
	s.mu.Lock()
	k, err := s.kindOf(obj)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	found, err := k.find(&o.ListOptions)
	s.mu.Unlock()
	for _, one := range found {
		if err := s.Delete(ctx, one, &o.DeleteOptions); err != nil {
			return err
		}
	}
	return err
}

// Delete implements [client.Writer]. A Pod stays until [Store.Remove], as one does
// until its kubelet has stopped it. What is deleted in the foreground, or so that what
// belongs to it is left to itself, stays until its finalizer is taken away.
func (s *Store) Delete(_ context.Context, obj client.Object, opts ...client.DeleteOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, before, err := s.existing(obj)
	if err != nil {
		return err
	}
	o := (&client.DeleteOptions{}).ApplyOptions(opts)
	wanted := preconditions{}
	if p := o.Preconditions; p != nil && p.UID != nil {
		wanted.uid = *p.UID
	}
	if p := o.Preconditions; p != nil && p.ResourceVersion != nil {
		wanted.version = *p.ResourceVersion
	}
	if err := k.checkPreconditions(before, wanted); err != nil || len(o.DryRun) > 0 {
		return err
	}
	s.condemn(k, before, o.PropagationPolicy)
	return nil
}

// existing is the object of that name, and where its kind is kept.
func (s *Store) existing(obj client.Object) (*kind, client.Object, error) {
	k, err := s.kindOf(obj)
	if err != nil {
		return nil, nil, err
	}
	before, err := k.get(client.ObjectKeyFromObject(obj))
	return k, before, err
}

func (k *kind) checkPreconditions(is client.Object, p preconditions) error {
	switch {
	case p.uid != "" && p.uid != is.GetUID():
		return apierrors.NewConflict(k.resource(), is.GetName(), fmt.Errorf("the UID is %s, not %s", is.GetUID(), p.uid))
	case p.version != "" && p.version != is.GetResourceVersion():
		return apierrors.NewConflict(k.resource(), is.GetName(), fmt.Errorf("the version is %s, not %s", is.GetResourceVersion(), p.version))
	default:
		return nil
	}
}

// condemn deletes an object, or marks it as one that goes once nothing keeps it.
func (s *Store) condemn(k *kind, before client.Object, how *metav1.DeletionPropagation) {
	finalizer := ""
	if how != nil {
		finalizer = finalizers[*how]
	}
	if !isPod(before) && len(before.GetFinalizers()) == 0 && finalizer == "" {
		s.put(k, before, nil)
		return
	}
	if before.GetDeletionTimestamp() != nil {
		return
	}
	after := before.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy is of its kind
	if finalizer != "" && !isPod(before) {
		controllerutil.AddFinalizer(after, finalizer)
	}
	now := metav1.NewTime(s.now())
	after.SetDeletionTimestamp(&now)
	if hasStatus(after) {
		after.SetGeneration(before.GetGeneration() + 1)
	}
	s.put(k, before, after)
}

// clearStatus takes away the status, which cannot be set when an object is created.
func clearStatus(obj client.Object) {
	if status, ok := statusOf(obj); ok {
		status.SetZero()
	}
}

// hasStatus is true of an object whose status is a subresource. Of those the
// generation is counted.
func hasStatus(obj client.Object) bool {
	_, ok := statusOf(obj)
	return ok || isUntyped(obj)
}

// statusOf is the status of an object that has a Go type.
func statusOf(obj client.Object) (reflect.Value, bool) {
	v := reflect.ValueOf(obj).Elem()
	if v.Kind() != reflect.Struct {
		return reflect.Value{}, false
	}
	f := v.FieldByName("Status")
	return f, f.IsValid()
}
