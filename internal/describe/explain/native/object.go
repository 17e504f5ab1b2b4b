package native

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain/chain"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/shell"
	"github.com/spillway-dev/spillway/rollout"
)

// ErrNotFound is returned for an object that a person has named and that does not exist.
var ErrNotFound = errors.New("not found")

// errUnknownKind: nothing says what kind it is.
var errUnknownKind = errors.New("the cluster has no such kind")

// Object is anything else: how kstatus judges it.
func (a *Asker) Object(ctx context.Context, ref describe.Ref, first bool) (chain.Answer, error) {
	u, err := a.ReadAny(ctx, ref)
	if chain.IsNotFound(err) && first {
		return chain.Answer{}, fmt.Errorf("%s %s %w%s", ref.Kind, ref.Name, ErrNotFound, chain.InNamespace(ref))
	}
	if chain.IsNotFound(err) {
		link := a.Link(ref, chain.ReasonMissing, "%s %s not found", ref.Kind, ref.Name)
		link.Next = a.Command("kubectl get " + shell.Quote(chain.ResourceIn(ref)) + chain.NamespaceFlag(ref))
		return chain.Answer{Links: []chain.Link{link}}, nil
	}
	if err != nil {
		return chain.Answer{}, err
	}
	return chain.Answer{Links: []chain.Link{a.judged(ref, u)}, Facts: describe.UnpinnedFacts(ref.Kind, u)}, nil
}

// judged is how an object does.
func (a *Asker) judged(ref describe.Ref, u *unstructured.Unstructured) chain.Link {
	if names := u.GetFinalizers(); u.GetDeletionTimestamp() != nil && len(names) > 0 {
		return a.Finalizer(ref, names[0])
	}
	lacks, fatal := task.Judge(u)
	if lacks == "" {
		link := a.Link(ref, "", "%s %s is ready", ref.Kind, ref.Name)
		link.Phase = rollout.PhaseComplete
		return link
	}
	link := a.Link(ref, chain.ReasonNotReady, "%s %s is not ready: %s", ref.Kind, ref.Name, strings.TrimPrefix(lacks, "waiting for "+ref.Kind+" "+ref.Name+": "))
	link.Phase, link.Next, link.Owner = rollout.PhaseWaiting, a.Kubectl("describe", ref), ownerOf(u)
	if fatal {
		link.Phase, link.Reason = rollout.PhaseFailed, chain.ReasonFailed
	}
	return link
}

// ReadAny reads an object of whatever kind.
func (a *Asker) ReadAny(ctx context.Context, ref describe.Ref) (*unstructured.Unstructured, error) {
	gvk, err := a.gvk(ref)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u, a.Get(ctx, ref, u)
}

// gvk is the kind of a reference: what it says, or else the one of that name.
func (a *Asker) gvk(ref describe.Ref) (schema.GroupVersionKind, error) {
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
