package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/assemblage"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
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
		return a.change(ctx, o, w, disposal(w))
	case Suspend:
		return a.change(ctx, o, w, map[string]any{"metadata": annotated(vocabulary.ReleaseDeletionPolicy.Native, leaving), "spec": map[string]any{"suspend": true}})
	default:
		return a.change(ctx, o, w, map[string]any{"metadata": kicked(w, a.now().Format(time.RFC3339Nano))})
	}
}

// disposal says what becomes of what was applied, where the kind has it said.
func disposal(w *Write) map[string]any {
	if w.Kind == helmv2.HelmReleaseKind {
		return map[string]any{"metadata": annotated(vocabulary.ReleaseDeletionPolicy.Native, w.Policy)}
	}
	return map[string]any{"spec": map[string]any{"deletionPolicy": w.Policy}}
}

// kicked asks for another try, also of a HelmRelease that has used up its own.
func kicked(w *Write, at string) map[string]any {
	annotations := map[string]any{meta.ReconcileRequestAnnotation: at}
	if w.Kind == helmv2.HelmReleaseKind {
		annotations[helmv2.ResetRequestAnnotation] = at
	}
	return map[string]any{"annotations": annotations}
}

func annotated(key, value string) map[string]any {
	return map[string]any{"annotations": map[string]any{key: value}}
}

// apply applies a source, whose name says what it is, or a Kustomization or HelmRelease,
// over the one that was seen.
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
	if kind := u.GetKind(); kind == kustomizev1.KustomizationKind || kind == helmv2.HelmReleaseKind {
		obj = appliedObject(kind)
	}
	obj.SetNamespace(u.GetNamespace())
	obj.SetName(u.GetName())
	err = a.Client.Patch(ctx, obj, client.RawPatch(types.ApplyPatchType, raw), client.FieldOwner(kube.FieldOwner), client.ForceOwnership)
	return wrapped(err, "apply %s %s", u.GetKind(), u.GetName())
}

// remove deletes what was seen.
func (a actor) remove(ctx context.Context, o *Observed, w *Write) error {
	err := a.Client.Delete(ctx, objectOf(o, w), client.Preconditions{UID: &w.UID})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it was deleted or replaced; the next pass observes which
	}
	return wrapped(err, "delete %s %s", w.Kind, w.Name)
}

// change changes what was seen.
func (a actor) change(ctx context.Context, o *Observed, w *Write, patch map[string]any) error {
	u := unstructured.Unstructured{Object: patch}
	u.SetUID(w.UID)
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	err = a.Client.Patch(ctx, objectOf(o, w), client.RawPatch(types.MergePatchType, raw), client.FieldOwner(kube.FieldOwner))
	if apierrors.IsNotFound(err) {
		return nil
	}
	return wrapped(err, "change %s %s", w.Kind, w.Name)
}

// collect deletes a source as it was seen.
func collect(ctx context.Context, w client.Writer, source client.Object) error {
	err := ring.Do(ctx, nil, time.Time{}, func(ctx context.Context) error {
		return w.Delete(ctx, source, ring.Preconditions(source.GetUID(), source.GetResourceVersion()))
	})
	return wrapped(err, "collect %s", source.GetName())
}

// objectOf names what a write is about.
func objectOf(o *Observed, w *Write) client.Object {
	obj := appliedObject(w.Kind)
	obj.SetNamespace(o.Assemblage.Namespace)
	obj.SetName(w.Name)
	return obj
}

func wrapped(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
