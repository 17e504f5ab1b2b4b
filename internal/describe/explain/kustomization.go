package explain

import (
	"context"
	"fmt"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/shell"
	"github.com/spillway-dev/spillway/rollout"
)

func colon(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}

// kustomization is how Flux applies something: from where, and which object is unhealthy.
func (a *asker) kustomization(ctx context.Context, ref describe.Ref, _ bool) (answer, error) {
	k := &kustomizev1.Kustomization{}
	err := a.get(ctx, ref, k)
	if IsNotFound(err) || apimeta.IsNoMatchError(err) {
		return a.notMade(ctx, ref, err)
	}
	if err != nil {
		return answer{}, err
	}
	ready := apimeta.FindStatusCondition(k.Status.Conditions, "Ready")
	link := a.link(ref, ReasonNotObserved, "Kustomization %s is waiting: not reconciled %s; is kustomize-controller of Flux running?", ref.Name, asOf(ready))
	link.Phase, link.Next = rollout.PhaseWaiting, a.command("kubectl get pods -A -l app=kustomize-controller")
	found := answer{Links: []Link{link}}
	own := &found.Links[0]
	switch {
	case k.Spec.Suspend:
		own.Reason, own.Sentence = ReasonSuspended, a.place()+"Kustomization "+ref.Name+" is suspended: spec.suspend is set"
		own.Next = a.kubectl("patch", ref, "--type=merge", "-p", `{"spec":{"suspend":false}}`)
		return found, nil
	case ready == nil || ready.ObservedGeneration != k.Generation:
		return a.notBegun(ctx, k, found), nil
	}
	own.Reason, own.Since, own.Next = rollout.Reason(ready.Reason), describe.TimeOrNil(ready.LastTransitionTime.Time), a.kubectl("describe", ref)
	own.Sentence = a.place() + fmt.Sprintf("Kustomization %s is not ready: %s", ref.Name, firstLine(ready.Message))
	if ready.Status == metav1.ConditionTrue {
		own.Reason, own.Phase, own.Next = "", rollout.PhaseComplete, ""
		own.Sentence = a.place() + "Kustomization " + ref.Name + " is applied and healthy"
		return found, nil
	}
	return a.notApplied(ctx, k, found)
}

// asOf is of which Kustomization Flux has said nothing: of what it is now, or of any.
func asOf(ready *metav1.Condition) string {
	if ready == nil {
		return "yet"
	}
	return "at this generation"
}

// notBegun: Flux has said nothing of it as it is now, which it does not before there is
// a source.
func (a *asker) notBegun(ctx context.Context, k *kustomizev1.Kustomization, found answer) answer {
	if link := a.unfetched(ctx, k); link != nil {
		found.Links[0].Next = ""
		found.Links[0].Sentence = a.place() + "Kustomization " + k.Name + " has nothing to apply yet"
		found.Links[0].Reason = ReasonSource
		found.Links = append(found.Links, *link)
	}
	return found
}

// notMade is the Kustomization of a sync that does not exist.
func (a *asker) notMade(ctx context.Context, ref describe.Ref, err error) (answer, error) {
	link := a.link(ref, ReasonMissing, "Kustomization %s not found in namespace %s", ref.Name, ref.Namespace)
	link.Next = a.command("kubectl get assemblages,kustomizations " + shell.Join("-n", ref.Namespace))
	if apimeta.IsNoMatchError(err) {
		link.Sentence = a.place() + "Flux is not installed: kind Kustomization not found"
		link.Next = a.command("flux install")
		return answer{Links: []Link{link}}, nil
	}
	found := answer{Links: []Link{link}}
	down, err := a.manages(ctx, describe.Ref{Kind: describe.KindManager, Name: "spillway"}, ref.Namespace)
	if err == nil && down.Links[0].Reason == ReasonManagerDown {
		found = found.And(&down)
	}
	return found, nil
}

// notApplied goes to the source if that is why, to what it depends on, to what has
// refused it, or to the unhealthy object.
func (a *asker) notApplied(ctx context.Context, k *kustomizev1.Kustomization, found answer) (answer, error) {
	if link := a.unfetched(ctx, k); link != nil {
		found.Links[0].Next = ""
		found.Links = append(found.Links, *link)
		return found, nil
	}
	for _, dependency := range k.Spec.DependsOn {
		ref := describe.Ref{Kind: describe.KindKustomization, Namespace: k.Namespace, Name: dependency.Name}
		other := &kustomizev1.Kustomization{}
		if err := a.get(ctx, ref, other); err == nil && !apimeta.IsStatusConditionTrue(other.Status.Conditions, "Ready") {
			found.Then = a.about(ref)
			return found, nil
		}
	}
	inside := a
	if remote := k.Spec.KubeConfig; remote != nil && remote.SecretRef != nil {
		var why *Link
		name := cluster.NameOf(remote.SecretRef.Name)
		if inside, why = a.enter(ctx, name, describe.Ref{Kind: describe.KindSecret, Namespace: k.Namespace, Name: remote.SecretRef.Name}); why != nil {
			found.Links = append(found.Links, *why)
			return found, nil
		}
	}
	return inside.firstOf(ctx, k, found)
}

// unfetched is the source of a Kustomization if that is not ready.
func (a *asker) unfetched(ctx context.Context, k *kustomizev1.Kustomization) *Link {
	s := &k.Spec.SourceRef
	ref := describe.Ref{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}
	if ref.Namespace == "" {
		ref.Namespace = k.Namespace
	}
	u, err := a.readAny(ctx, ref)
	if IsNotFound(err) {
		link := a.link(ref, ReasonSource, "source %s %s not found", ref.Kind, ref.Name)
		link.Next = a.command("kubectl get " + shell.Join(strings.ToLower(ref.Kind), "-n", ref.Namespace))
		return &link
	}
	if err != nil {
		return nil
	}
	c := conditionOf(u, "Ready")
	if c == nil || c.Status == metav1.ConditionTrue {
		return nil
	}
	link := a.link(ref, ReasonSource, "%s %s cannot be fetched: %s", ref.Kind, ref.Name, firstLine(c.Message))
	link.Since, link.Next = describe.TimeOrNil(c.LastTransitionTime.Time), a.kubectl("describe", ref)
	return &link
}

// firstLine is the beginning of a message that may have many.
func firstLine(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	return line
}

// conditionOf is a condition of any object, nil if it has none.
func conditionOf(u *unstructured.Unstructured, kind string) *metav1.Condition {
	all, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range all {
		fields, ok := c.(map[string]any)
		if !ok || fields["type"] != kind {
			continue
		}
		text := func(key string) string { s, _ := fields[key].(string); return s }
		found := &metav1.Condition{Type: kind, Status: metav1.ConditionStatus(text("status")), Message: text("message")}
		_ = found.LastTransitionTime.UnmarshalQueryParameter(text("lastTransitionTime")) // without one it is zero
		return found
	}
	return nil
}

// firstOf continues with the first unhealthy object of a Kustomization.
func (a *asker) firstOf(ctx context.Context, k *kustomizev1.Kustomization, found answer) (answer, error) {
	if k.Status.Inventory != nil {
		for _, entry := range k.Status.Inventory.Entries[:min(len(k.Status.Inventory.Entries), maxObjects)] {
			ref, gvk, ok := applied(entry)
			if !ok {
				continue
			}
			if bad, err := a.isBad(ctx, ref, gvk); err != nil || bad {
				found.Links[0].Next, found.Then = "", a.about(ref)
				return found, nil //nolint:nilerr // its own question says that it cannot be read
			}
		}
	}
	ready := apimeta.FindStatusCondition(k.Status.Conditions, "Ready")
	if refused := a.refusal(ctx, describe.RefTo(describe.KindKustomization, k), ready.Message); refused.Links[0].Reason != ReasonRefused {
		found = found.And(refused)
	}
	return found, nil
}

// applied is what an entry of Flux' inventory names: NAMESPACE_NAME_GROUP_KIND, where a
// colon in the name, as the names of roles may have, is two underscores.
func applied(entry kustomizev1.ResourceRef) (describe.Ref, schema.GroupVersionKind, bool) {
	namespace, rest, _ := strings.Cut(entry.ID, "_")
	i := strings.LastIndex(rest, "_")
	if i < 0 {
		return describe.Ref{}, schema.GroupVersionKind{}, false
	}
	rest, kind := rest[:i], rest[i+1:]
	if i = strings.LastIndex(rest, "_"); i < 0 {
		return describe.Ref{}, schema.GroupVersionKind{}, false
	}
	name, group := strings.ReplaceAll(rest[:i], "__", ":"), rest[i+1:]
	gvk := schema.GroupVersionKind{Group: group, Version: entry.Version, Kind: kind}
	return describe.Ref{Kind: kind, Namespace: namespace, Name: name, APIVersion: foreign(group, entry.Version)}, gvk, true
}

// isBad is true of an object that does not exist, or is unhealthy.
func (a *asker) isBad(ctx context.Context, ref describe.Ref, gvk schema.GroupVersionKind) (bool, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	err := a.get(ctx, ref, u)
	if IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return !a.isHealthy(ctx, ref, u), nil
}
