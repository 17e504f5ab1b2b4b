package explain

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/shell"
	"github.com/spillway-dev/spillway/rollout"
)

// ErrNotFound is returned for an object that a person has named and that does not exist.
var ErrNotFound = errors.New("not found")

// errUnknownKind: nothing says what kind it is.
var errUnknownKind = errors.New("the cluster has no such kind")

// object is anything else: how kstatus judges it.
func (a *asker) object(ctx context.Context, ref describe.Ref, first bool) (answer, error) {
	u, err := a.readAny(ctx, ref)
	if IsNotFound(err) && first {
		return answer{}, fmt.Errorf("%s %s %w%s", ref.Kind, ref.Name, ErrNotFound, inNamespace(ref))
	}
	if IsNotFound(err) {
		link := a.link(ref, ReasonMissing, "%s %s not found", ref.Kind, ref.Name)
		link.Next = a.command("kubectl get " + shell.Quote(resourceIn(ref)) + namespaceFlag(ref))
		return answer{Links: []Link{link}}, nil
	}
	if err != nil {
		return answer{}, err
	}
	return answer{Links: []Link{a.judged(ref, u)}, Facts: describe.UnpinnedFacts(ref.Kind, u)}, nil
}

// judged is how an object does.
func (a *asker) judged(ref describe.Ref, u *unstructured.Unstructured) Link {
	if names := u.GetFinalizers(); u.GetDeletionTimestamp() != nil && len(names) > 0 {
		return a.finalizer(ref, names[0])
	}
	lacks, fatal := task.Judge(u)
	if lacks == "" {
		link := a.link(ref, "", "%s %s is ready", ref.Kind, ref.Name)
		link.Phase = rollout.PhaseComplete
		return link
	}
	link := a.link(ref, ReasonNotReady, "%s %s is not ready: %s", ref.Kind, ref.Name, strings.TrimPrefix(lacks, "waiting for "+ref.Kind+" "+ref.Name+": "))
	link.Phase, link.Next, link.Owner = rollout.PhaseWaiting, a.kubectl("describe", ref), ownerOf(u)
	if fatal {
		link.Phase, link.Reason = rollout.PhaseFailed, ReasonFailed
	}
	return link
}

// readAny reads an object of whatever kind.
func (a *asker) readAny(ctx context.Context, ref describe.Ref) (*unstructured.Unstructured, error) {
	gvk, err := a.gvk(ref)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u, a.get(ctx, ref, u)
}

// gvk is the kind of a reference: what it says, or else the one of that name.
func (a *asker) gvk(ref describe.Ref) (schema.GroupVersionKind, error) {
	if ref.APIVersion != "" {
		return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), nil
	}
	for gvk := range a.Client.Scheme().AllKnownTypes() {
		if gvk.Kind != ref.Kind || gvk.Version == "__internal" {
			continue
		}
		if mapping, err := a.Client.RESTMapper().RESTMapping(gvk.GroupKind()); err == nil {
			return mapping.GroupVersionKind, nil
		} else if !apimeta.IsNoMatchError(err) {
			return gvk, fmt.Errorf("look for the kind %s: %w", ref.Kind, err)
		}
	}
	return schema.GroupVersionKind{}, fmt.Errorf("%s: %w", ref.Kind, errUnknownKind)
}
