package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/assemblage"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/ring"
)

// actor makes the writes.
type actor struct {
	assemblage.Actor[Write]

	now func() time.Time
}

func newActor(c client.Client, live client.Reader, f flavor, now func() time.Time) actor {
	return actor{now: now, Actor: assemblage.Actor[Write]{
		Client: c, Live: live, Kind: v1alpha1.GroupVersion.WithKind(f.kind), Status: f.status,
		Of: func(w *Write) (Act, string) { return w.Act, w.Sync },
	}}
}

// act makes the writes of a plan.
func (a actor) act(ctx context.Context, s *snapshot, p *Plan) assemblage.Results {
	return a.Act(ctx, assemblage.Pass[Write]{
		Read:  s.object,
		Write: func(ctx context.Context, w *Write) error { return a.write(ctx, s.Observed, w) },
		Refused: func(refusals assemblage.Refusals) assemblage.Plan[Write] {
			seen := *s.Observed
			seen.Refusals = refusals
			*p = Decide(&seen)
			return p.Plan
		},
	}, &p.Plan)
}

// write makes one write of an object of Flux.
func (a actor) write(ctx context.Context, o *Observed, w *Write) error {
	switch w.Act {
	case Apply:
		return a.apply(ctx, w)
	case Delete:
		return a.remove(ctx, o, w)
	case Dispose:
		return a.change(ctx, o, w, map[string]any{"spec": map[string]any{"deletionPolicy": w.Policy}})
	default:
		return a.change(ctx, o, w, map[string]any{"metadata": map[string]any{
			"annotations": map[string]any{meta.ReconcileRequestAnnotation: a.now().Format(time.RFC3339Nano)},
		}})
	}
}

// apply applies a source, whose name says what it is, or a Kustomization, over the
// one that was seen.
func (a actor) apply(ctx context.Context, w *Write) error {
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
	err = a.Client.Patch(ctx, obj, client.RawPatch(types.ApplyPatchType, raw), client.FieldOwner(kube.FieldOwner), client.ForceOwnership)
	return wrapped(err, "apply %s %s", u.GetKind(), u.GetName())
}

// remove deletes the Kustomization that was seen.
func (a actor) remove(ctx context.Context, o *Observed, w *Write) error {
	err := a.Client.Delete(ctx, kustomization(o, w), client.Preconditions{UID: &w.UID})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it was deleted or replaced; the next pass observes which
	}
	return wrapped(err, "delete Kustomization %s", w.Name)
}

// change changes the Kustomization that was seen.
func (a actor) change(ctx context.Context, o *Observed, w *Write, patch map[string]any) error {
	u := unstructured.Unstructured{Object: patch}
	u.SetUID(w.UID)
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	err = a.Client.Patch(ctx, kustomization(o, w), client.RawPatch(types.MergePatchType, raw), client.FieldOwner(kube.FieldOwner))
	if apierrors.IsNotFound(err) {
		return nil
	}
	return wrapped(err, "change Kustomization %s", w.Name)
}

// collect deletes a source as it was seen.
func collect(ctx context.Context, w client.Writer, source client.Object) error {
	err := ring.Do(ctx, nil, time.Time{}, func(ctx context.Context) error {
		return w.Delete(ctx, source, ring.Preconditions(source.GetUID(), source.GetResourceVersion()))
	})
	return wrapped(err, "collect %s", source.GetName())
}

func kustomization(o *Observed, w *Write) *kustomizev1.Kustomization {
	return &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: o.Assemblage.Namespace, Name: w.Name}}
}

func wrapped(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
