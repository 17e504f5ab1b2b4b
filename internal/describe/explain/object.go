package explain

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
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

// service is a Service, which serves if one of its endpoints is ready.
func (a *asker) service(ctx context.Context, ref describe.Ref, first bool) (answer, error) {
	s := &corev1.Service{}
	err := a.get(ctx, ref, s)
	if IsNotFound(err) && first {
		return answer{}, fmt.Errorf("%s %s %w in namespace %s", ref.Kind, ref.Name, ErrNotFound, ref.Namespace)
	}
	if IsNotFound(err) {
		link := a.link(ref, ReasonMissing, "Service %s in namespace %s does not exist", ref.Name, ref.Namespace)
		link.Next = a.command("kubectl get services" + namespaceFlag(ref))
		return answer{Links: []Link{link}}, nil
	}
	if err != nil {
		return answer{}, err
	}
	ready, err := a.endpoints(ctx, ref)
	if err != nil {
		return answer{Links: []Link{a.link(ref, "", "Service %s exists", s.Name)}}, err
	}
	if ready > 0 {
		return answer{Links: []Link{a.link(ref, "", "Service %s has %d endpoints that are ready", s.Name, ready)}}, nil
	}
	return a.unserved(ctx, s)
}

// unserved goes to the Pod that should serve, if there is one.
func (a *asker) unserved(ctx context.Context, s *corev1.Service) (answer, error) {
	link := a.link(describe.RefTo(describe.KindService, s), ReasonEndpoints, "Service %s in namespace %s has no ready endpoint", s.Name, s.Namespace)
	link.Next = a.kubectl("describe", link.Ref)
	found := answer{Links: []Link{link}}
	var pods corev1.PodList
	if len(s.Spec.Selector) > 0 {
		if err := a.Client.List(ctx, &pods, client.InNamespace(s.Namespace), client.MatchingLabels(s.Spec.Selector)); err != nil {
			return found, fmt.Errorf("list Pods: %w", err)
		}
	}
	if i := worst(pods.Items); i >= 0 {
		found.Then = a.about(describe.RefTo(describe.KindPod, &pods.Items[i]))
		return found, nil
	}
	if makers := a.workloadsOf(ctx, s); len(makers) > 0 {
		found.Then = a.about(makers[0])
		return found, nil
	}
	found.Links[0].Sentence += ": its selector matches no Pod"
	return found, nil
}

// workloadsOf are the workloads whose Pods a Service would find.
func (a *asker) workloadsOf(ctx context.Context, s *corev1.Service) []describe.Ref {
	var makers []describe.Ref
	templates, err := a.templatesWith(ctx, s.Namespace, s.Spec.Selector)
	if err != nil || len(s.Spec.Selector) == 0 {
		return nil
	}
	for _, w := range templates {
		makers = append(makers, w.Ref())
	}
	return makers
}

// disruptionBudget is a native one: whether anything may be evicted.
func (a *asker) disruptionBudget(ctx context.Context, ref describe.Ref, _ bool) (answer, error) {
	b := &policyv1.PodDisruptionBudget{}
	if err := a.get(ctx, ref, b); err != nil {
		return answer{}, err
	}
	if b.Status.DisruptionsAllowed > 0 {
		return answer{Links: []Link{a.link(ref, "", "PodDisruptionBudget %s allows %d disruptions", ref.Name, b.Status.DisruptionsAllowed)}}, nil
	}
	link := a.link(ref, ReasonNoBudget, "PodDisruptionBudget %s allows no disruption: %d of %d Pods are healthy, %d must be",
		ref.Name, b.Status.CurrentHealthy, b.Status.ExpectedPods, b.Status.DesiredHealthy)
	link.Next = a.kubectl("describe", ref)
	return answer{Links: []Link{link}}, nil
}

// zoneBudget is one of ours: whether anything may be evicted at all.
func (a *asker) zoneBudget(ctx context.Context, ref describe.Ref, _ bool) (answer, error) {
	b := &zonesv1.ZoneAwarePodDisruptionBudget{}
	if err := a.get(ctx, ref, b); err != nil {
		return answer{}, err
	}
	var facts []describe.Fact
	for name, d := range b.Status.DisruptedPods {
		facts = append(facts, describe.FactOf("evicted", fmt.Sprintf("%s, at %s", name, rollout.Clock(d.At.Time))))
	}
	if n := b.Spec.MaxUnavailable; n != nil && *n == 0 {
		link := a.link(ref, ReasonNoBudget, "ZoneAwarePodDisruptionBudget %s allows no eviction: spec.maxUnavailable is 0", ref.Name)
		link.Next = a.kubectl("patch", ref, "--type=merge", "-p", `{"spec":{"maxUnavailable":1}}`)
		return answer{Links: []Link{link}, Facts: facts}, nil
	}
	return answer{Links: []Link{a.link(ref, "", "ZoneAwarePodDisruptionBudget %s allows evictions, in one zone at a time", ref.Name)}, Facts: facts}, nil
}
