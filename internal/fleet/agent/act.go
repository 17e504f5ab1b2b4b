package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// errConflict says that the decision was made from a view that is not the newest.
var errConflict = errors.New("conflict")

// actor makes the writes.
type actor struct {
	flavor flavor
	client client.Client
	live   client.Reader
	now    func() time.Time
}

// results records what became of the writes of a plan.
type results struct {
	// made is how many writes were made besides that of the status.
	made int
	// reported is true if the status was written.
	reported bool
	// err ended the pass, or says what was refused in it.
	err error
}

// act makes the writes if the assemblage is unchanged since it was observed, and then
// writes the status. A write that is refused for one sync does not stop the others.
func (a actor) act(ctx context.Context, o *Observed, p *Plan) (d results) {
	if len(p.Writes) > 0 {
		if d.err = a.confirm(ctx, &o.Assemblage); d.err != nil {
			return d
		}
	}
	refused, err := a.writeAll(ctx, o, p.Writes, &d)
	if err != nil {
		d.err = err
		return d
	}
	if len(refused) > 0 { // the status must show the refusals
		seen := *o
		seen.Refusals = refused
		*p = Decide(&seen)
	}
	if p.Changes && !changesObject(p.Writes) {
		err := conflictOr(a.writeStatus(ctx, o, p))
		d.reported, d.err = err == nil, errors.Join(d.err, err)
	}
	return d
}

// writeAll makes the writes. After a refusal it skips the later writes of the same sync.
// A refused write that belongs to no sync ends the pass, and so does any other error.
func (a actor) writeAll(ctx context.Context, o *Observed, writes []Write, d *results) (refused map[string]*outcome.Refusal, err error) {
	refused = map[string]*outcome.Refusal{}
	for _, w := range writes {
		if refused[w.Sync] != nil {
			continue // it depends on what was refused
		}
		err := conflictOr(a.write(ctx, o, w))
		switch refusal := outcome.RefusalOf(err); {
		case err == nil:
			d.made++
		case refusal == nil || changesObject([]Write{w}):
			return nil, err
		default:
			refused[w.Sync], d.err = refusal, errors.Join(d.err, err)
		}
	}
	return refused, nil
}

// changesObject is true if a write has made another version of the assemblage.
func changesObject(writes []Write) bool {
	for _, w := range writes {
		if w.Act == AddFinalizer || w.Act == RemoveFinalizer || w.Act == Retire {
			return true
		}
	}
	return false
}

func conflictOr(err error) error {
	if apierrors.IsConflict(err) {
		return errConflict
	}
	return err
}

// confirm asks the API server whether the assemblage is unchanged since it was observed.
func (a actor) confirm(ctx context.Context, seen *Assemblage) error {
	head := &metav1.PartialObjectMetadata{}
	head.SetGroupVersionKind(seen.GroupVersionKind)
	err := a.live.Get(ctx, seen.NamespacedName, head)
	switch {
	case apierrors.IsNotFound(err):
		return errConflict
	case err != nil:
		return fmt.Errorf("confirm the %s: %w", seen.Kind, err)
	case head.UID != seen.UID || head.ResourceVersion != seen.ResourceVersion:
		return errConflict
	default:
		return nil
	}
}

// write makes one write.
func (a actor) write(ctx context.Context, o *Observed, w Write) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	switch w.Act {
	case Apply:
		return a.apply(ctx, w)
	case Delete:
		return a.remove(ctx, o, w)
	case Dispose:
		return a.change(ctx, o, w, map[string]any{"spec": map[string]any{"deletionPolicy": w.Policy}})
	case Retire:
		return a.retire(ctx, o)
	case Kick:
		return a.change(ctx, o, w, map[string]any{"metadata": map[string]any{
			"annotations": map[string]any{meta.ReconcileRequestAnnotation: a.now().Format(time.RFC3339Nano)},
		}})
	default:
		return a.finalize(ctx, o, w.Act == AddFinalizer)
	}
}

// apply applies a source, whose name says what it is, or a Kustomization, over the
// one that was seen.
func (a actor) apply(ctx context.Context, w Write) error {
	u := w.Object.DeepCopy()
	if w.UID != "" {
		u.SetUID(w.UID)
	}
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return fmt.Errorf("encode %s: %w", u.GetKind(), err)
	}
	var obj client.Object = sourceObject(u.GetKind())
	if u.GetKind() == kustomizev1.KustomizationKind {
		obj = &kustomizev1.Kustomization{}
	}
	obj.SetNamespace(u.GetNamespace())
	obj.SetName(u.GetName())
	err = a.client.Patch(ctx, obj, client.RawPatch(types.ApplyPatchType, raw), client.FieldOwner(kube.FieldOwner), client.ForceOwnership)
	return wrapped(err, "apply %s %s", u.GetKind(), u.GetName())
}

// remove deletes the Kustomization that was seen.
func (a actor) remove(ctx context.Context, o *Observed, w Write) error {
	err := a.client.Delete(ctx, kustomization(o, w), client.Preconditions{UID: &w.UID})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it was deleted or replaced; the next pass observes which
	}
	return wrapped(err, "delete Kustomization %s", w.Name)
}

func kustomization(o *Observed, w Write) *kustomizev1.Kustomization {
	return &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: o.Assemblage.Namespace, Name: w.Name}}
}

// change changes the Kustomization that was seen.
func (a actor) change(ctx context.Context, o *Observed, w Write, patch map[string]any) error {
	u := unstructured.Unstructured{Object: patch}
	u.SetUID(w.UID)
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	err = a.client.Patch(ctx, kustomization(o, w), client.RawPatch(types.MergePatchType, raw), client.FieldOwner(kube.FieldOwner))
	if apierrors.IsNotFound(err) {
		return nil
	}
	return wrapped(err, "change Kustomization %s", w.Name)
}

// retire deletes the assemblage as it was observed.
func (a actor) retire(ctx context.Context, o *Observed) error {
	obj, err := a.seen(ctx, o)
	if err != nil {
		return err
	}
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	err = a.client.Delete(ctx, obj, client.Preconditions{UID: &uid, ResourceVersion: &version})
	return wrapped(client.IgnoreNotFound(err), "retire %s", obj.GetName())
}

// finalize adds or removes the finalizer of the assemblage as it was seen.
func (a actor) finalize(ctx context.Context, o *Observed, add bool) error {
	obj, err := a.seen(ctx, o)
	if err != nil {
		return err
	}
	before, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return errConflict
	}
	if add {
		controllerutil.AddFinalizer(obj, vocabulary.AssemblageFinalizer)
	} else {
		controllerutil.RemoveFinalizer(obj, vocabulary.AssemblageFinalizer)
	}
	err = a.client.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(kube.FieldOwner))
	return wrapped(client.IgnoreNotFound(err), "write the finalizer")
}

// seen is the object as it was observed, of whatever kind it is.
func (a actor) seen(ctx context.Context, o *Observed) (client.Object, error) {
	obj := a.flavor.object()
	if err := a.client.Get(ctx, o.Assemblage.NamespacedName, obj); err != nil || obj.GetResourceVersion() != o.Assemblage.ResourceVersion {
		return nil, errors.Join(errConflict, client.IgnoreNotFound(err))
	}
	return obj, nil
}

// writeStatus writes the status of the assemblage as it was seen.
func (a actor) writeStatus(ctx context.Context, o *Observed, p *Plan) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	obj, err := a.seen(ctx, o)
	if err != nil {
		return err
	}
	*a.flavor.status(obj) = p.Status
	err = a.client.Status().Update(ctx, obj, client.FieldOwner(kube.FieldOwner))
	return wrapped(client.IgnoreNotFound(err), "write the status")
}

// collect deletes a source as it was seen.
func (a actor) collect(ctx context.Context, source client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	uid, version := source.GetUID(), source.GetResourceVersion()
	err := a.client.Delete(ctx, source, client.Preconditions{UID: &uid, ResourceVersion: &version})
	return conflictOr(wrapped(client.IgnoreNotFound(err), "collect %s", source.GetName()))
}

func wrapped(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
