package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// written is a field manager, and when it last wrote the object.
type written struct {
	by string
	at time.Time
}

// writerOf is the field manager that wrote last of those that own something at one of
// the paths; the zero value if there is none, or the API server does not say.
func writerOf(obj metav1.Object, paths ...[]string) written {
	var last written
	for _, e := range obj.GetManagedFields() {
		if e.Subresource != "" || e.FieldsV1 == nil || e.Time == nil || e.Time.Time.Before(last.at) {
			continue
		}
		raw := e.FieldsV1.GetRawBytes()
		if slices.ContainsFunc(paths, func(path []string) bool { return owns(raw, path) }) {
			last = written{by: e.Manager, at: e.Time.Time}
		}
	}
	return last
}

// owns is true if the fields have something at the path.
func owns(fields []byte, path []string) bool {
	for _, name := range path {
		var level map[string]json.RawMessage
		if json.Unmarshal(fields, &level) != nil || level["f:"+name] == nil {
			return false
		}
		fields = level["f:"+name]
	}
	return true
}

// people lists names, each once.
func people(names []string) string {
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}
