package history

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

// ErrNotFound is returned for objects that do not exist.
var ErrNotFound = errors.New("not found")

// ErrNoHistory is returned for objects of kinds that are not rolled.
var ErrNoHistory = errors.New("no ring rolls objects of its kind")

// History is what was rolled of an object, the newest first: when, by which change, by
// whom, how long its parts took, and the Events of that time. It has only what
// objects and Events still say. The revisions of a workload that keeps its config follow; of a
// ConfigMap or Secret it is the contents that are kept.
//
// It reads the object, what the change was made to, and the Events of the namespace.
// A caller who may not list Events gets the rest.
func History(ctx context.Context, reader client.Reader, ref describe.Ref) ([]Entry, error) {
	h := historian{reader: reader, ref: ref}
	episodes, err := h.episodes(ctx)
	if err != nil {
		return nil, err
	}
	members, err := MembersOf(ctx, reader, ref)
	if err != nil {
		return nil, err
	}
	notes, err := Events(ctx, reader, ref.Namespace)
	if client.IgnoreNotFound(err) != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	notes = slices.DeleteFunc(notes, func(n Event) bool { return !members.Has(&n) })
	for i := range notes {
		notes[i].AddChanged(ctx, reader)
	}
	annotate(episodes, notes)
	if slices.Contains(workloads.Kinds(), ref.Kind) {
		kept, err := h.ofRevisions(ctx)
		return append(episodes, kept...), err
	}
	return episodes, nil
}

// historian knows what was rolled of one object.
type historian struct {
	reader client.Reader
	ref    describe.Ref
}

func (h *historian) episodes(ctx context.Context) ([]Entry, error) {
	switch h.ref.Kind {
	case describe.KindGroup:
		return h.ofGroup(ctx)
	case describe.KindInstance:
		return h.ofInstance(ctx)
	case model.KindModule, model.KindBootstrap:
		return h.ofModule(ctx)
	case workloads.Deployment, workloads.StatefulSet, workloads.DaemonSet:
		return h.ofWorkload(ctx)
	case describe.KindConfigMap, describe.KindSecret:
		return h.ofObject(ctx)
	case describe.KindJob:
		return h.ofJob(ctx)
	case describe.KindCronJob:
		return h.ofCronJob(ctx)
	default:
		return nil, fmt.Errorf("%s: %w", h.ref, ErrNoHistory)
	}
}

// get reads the object.
func (h *historian) get(ctx context.Context, obj client.Object) error {
	err := h.reader.Get(ctx, client.ObjectKey{Namespace: h.ref.Namespace, Name: h.ref.Name}, obj)
	switch {
	case apimeta.IsNoMatchError(err):
		return fmt.Errorf("%s: the kind is not installed; install it with: %s", h.ref, describe.Installs(h.ref.Kind))
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s %w in namespace %s", h.ref, ErrNotFound, h.ref.Namespace)
	case err != nil:
		return fmt.Errorf("get %s: %w", h.ref, err)
	default:
		return nil
	}
}

// episode is one of the object.
func (h *historian) episode(ring, what string) Entry {
	return Entry{Ref: h.ref, Ring: ring, What: what}
}

// inNamespace lists objects beside the one that was asked for. A kind that is not
// installed, or that the caller may not list, has none.
func (h *historian) inNamespace(ctx context.Context, list client.ObjectList) error {
	err := h.reader.List(ctx, list, client.InNamespace(h.ref.Namespace))
	if err == nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
		return nil
	}
	return fmt.Errorf("list what belongs to %s: %w", h.ref, err)
}
