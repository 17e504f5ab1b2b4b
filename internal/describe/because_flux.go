package describe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/agent"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/rollout"
)

// assigned asks about what a cluster is assigned by a module.
func (a *asker) assigned(module Ref, name string) *question {
	ref := Ref{Kind: assemblageKind(module), Namespace: module.Namespace, Name: name}
	return &question{asker: a, ref: ref, answer: func(ctx context.Context, _ bool) (answer, error) {
		return a.sync(ctx, ref, module.Name)
	}}
}

// assembled is what is assigned to a cluster, whichever kind says so.
type assembled struct {
	client.Object

	cluster, secret string
	reports         []fleetv1.SyncStatus
	syncs           []string
}

func assembledOf(obj client.Object) assembled {
	all := assembled{Object: obj}
	var ref *fleetv1.ClusterReference
	switch o := obj.(type) {
	case *fleetv1.ProxyAssemblage:
		all.secret, all.reports, ref = o.Spec.KubeconfigRef.Name, o.Status.Syncs, o.Spec.ClusterRef
		for i := range o.Spec.Assemblage.Syncs {
			all.syncs = append(all.syncs, o.Spec.Assemblage.Syncs[i].Name)
		}
	case *fleetv1.RemoteAssemblage:
		all.secret, all.reports, ref = o.Spec.KubeconfigRef.Name, o.Status.Syncs, o.Spec.ClusterRef
		for i := range o.Spec.Syncs {
			all.syncs = append(all.syncs, o.Spec.Syncs[i].Name)
		}
	}
	all.cluster = cluster.NameOf(all.secret)
	if ref != nil {
		all.cluster = ref.Name
	}
	return all
}

func (s *assembled) report(sync string) *fleetv1.SyncStatus {
	i := slices.IndexFunc(s.reports, func(r fleetv1.SyncStatus) bool { return r.Name == sync })
	if i < 0 {
		return nil
	}
	return &s.reports[i]
}

// assemblage is one that somebody asks about: the first of its syncs that is not well.
func (a *asker) assemblage(ctx context.Context, ref Ref, _ bool) (answer, error) {
	obj := newAssemblage(ref.Kind)
	if err := a.get(ctx, ref, obj); err != nil {
		return answer{}, err
	}
	all := assembledOf(obj)
	for _, sync := range all.syncs {
		if r := all.report(sync); r == nil || r.State != fleetv1.StateSucceeded {
			return a.syncOf(ctx, ref, &all, sync)
		}
	}
	return answer{links: []Link{a.link(ref, "", "all of %d modules have been applied to cluster %s, and are well", len(all.syncs), all.cluster)}}, nil
}

func newAssemblage(kind string) client.Object {
	if kind == kindRemote {
		return model.NewAssemblage(model.KindBootstrap)
	}
	return model.NewAssemblage(model.KindModule)
}

// sync is what became of a module on a cluster. The reference names the cluster; the
// assemblage may be named otherwise.
func (a *asker) sync(ctx context.Context, ref Ref, name string) (answer, error) {
	all, err := a.assemblageOf(ctx, ref)
	if err != nil {
		return answer{}, err
	}
	if all == nil {
		link := a.link(ref, ReasonMissing, "there is no %s for cluster %s yet", ref.Kind, ref.Name)
		return answer{links: []Link{link}, on: a.manager(ref.Namespace)}, nil
	}
	ref.Name = all.GetName()
	return a.syncOf(ctx, ref, all, name)
}

func (a *asker) assemblageOf(ctx context.Context, ref Ref) (*assembled, error) {
	all, err := a.assemblages(ctx, ref)
	for i := range all {
		if all[i].cluster == ref.Name {
			return &all[i], nil
		}
	}
	return nil, err
}

// assemblages are those of the kind and in the namespace of a reference.
func (a *asker) assemblages(ctx context.Context, ref Ref) ([]assembled, error) {
	var all []assembled
	if ref.Kind == kindRemote {
		list := &fleetv1.RemoteAssemblageList{}
		if err := a.Client.List(ctx, list, client.InNamespace(ref.Namespace)); err != nil {
			return nil, fmt.Errorf("list RemoteAssemblages: %w", err)
		}
		for i := range list.Items {
			all = append(all, assembledOf(&list.Items[i]))
		}
		return all, nil
	}
	list := &fleetv1.ProxyAssemblageList{}
	if err := a.Client.List(ctx, list, client.InNamespace(ref.Namespace)); err != nil {
		return nil, fmt.Errorf("list ProxyAssemblages: %w", err)
	}
	for i := range list.Items {
		all = append(all, assembledOf(&list.Items[i]))
	}
	return all, nil
}

// syncOf goes on to Flux: for a BootstrapModule on the hub, and otherwise on the cluster.
func (a *asker) syncOf(ctx context.Context, ref Ref, all *assembled, name string) (answer, error) {
	link := a.link(ref, rollout.ReasonProgressing, "nothing has been reported from cluster %s of %s yet", all.cluster, name)
	link.Ring, link.Phase, link.Next = manager.RingFleet, rollout.PhaseProgressing, a.kubectl("describe", ref)
	r := all.report(name)
	if r != nil {
		link.Reason, link.Phase = rollout.Reason(r.Reason), rollout.PhaseWaiting
		link.Sentence = a.place() + fmt.Sprintf("cluster %s reports %s as %s%s", all.cluster, name, r.State, colon(r.Message))
		if r.LastTransitionTime != nil {
			link.Since = momentOrNil(r.LastTransitionTime.Time)
		}
	}
	found := answer{links: []Link{link}}
	key := agent.Assemblage{Secret: secretOf(ref, all)}
	key.Namespace, key.Name = all.GetNamespace(), all.GetName()
	switch {
	case ref.Kind == kindRemote:
		found.on = a.about(a.kustomizationOf(ctx, &key, name))
	case r != nil && r.State == fleetv1.StateUnreachable:
		found.links = append(found.links, a.unreachable(ref, all))
	default:
		inside, why := a.enter(ctx, all.cluster, Ref{Kind: kindSecret, Namespace: ref.Namespace, Name: all.secret})
		if why != nil {
			found.links = append(found.links, *why)
			return found, nil
		}
		found.on = inside.about(inside.kustomizationOf(ctx, &key, name))
	}
	return found, nil
}

// kustomizationOf is the Kustomization that a sync was made into: by the name that it has
// kept, if it was made when names were others.
func (a *asker) kustomizationOf(ctx context.Context, key *agent.Assemblage, sync string) Ref {
	ref := Ref{Kind: kindKustomization, Namespace: key.Namespace, Name: agent.KustomizationName(key, sync)}
	former := ref
	former.Name = agent.FormerKustomizationName(key, sync)
	k := &kustomizev1.Kustomization{}
	if former == ref || a.get(ctx, former, k) != nil {
		return ref
	}
	if owner := metav1.GetControllerOf(k); owner == nil || owner.Name != key.Name {
		return ref
	}
	return former
}

func secretOf(ref Ref, all *assembled) string {
	if ref.Kind == kindRemote {
		return all.secret
	}
	return ""
}

func colon(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}

// unreachable is a cluster that does not answer.
func (a *asker) unreachable(ref Ref, all *assembled) Link {
	link := a.link(Ref{Kind: kindSecret, Namespace: ref.Namespace, Name: all.secret}, ReasonUnreachable,
		"cluster %s cannot be reached by the address and with the credentials in Secret %s", all.cluster, all.secret)
	inside := a.inside(all.cluster, link.Ref)
	link.First, link.Next = inside.first, inside.pointless("kubectl cluster-info")
	return link
}

// inside asks another cluster. Commands find it by a file with its kubeconfig, which has
// to be made first: not by a pipe, which the kubectl that comes with gcloud cannot read.
func (a *asker) inside(name string, secret Ref) *asker {
	w, file := a.World, name+".kubeconfig"
	w.Client, w.Options.Namespaces, w.Flags = nil, nil, []string{"--kubeconfig", file}
	get := a.kubectl("get", secret, "-o", "go-template='{{.data.value | base64decode}}'")
	first := "(umask 077; " + get + " > " + file + ")"
	if a.first != "" {
		first = a.first + " && " + first
	}
	inside := newAsker(w)
	inside.in, inside.first = name, first
	return inside
}

// enter goes on in another cluster. If the caller may not read its kubeconfig, or it
// does not answer, the link says so, and how to ask there.
func (a *asker) enter(ctx context.Context, name string, secret Ref) (*asker, *Link) {
	inside, s := a.inside(name, secret), &corev1.Secret{}
	err := a.get(ctx, secret, s)
	if err == nil && a.Dial == nil {
		err = errors.New("other clusters are not asked")
	}
	if err == nil {
		inside.Client, err = a.Dial(s.Data["value"])
	}
	if err == nil {
		return inside, nil
	}
	link := a.link(Ref{Kind: KindCluster, Namespace: secret.Namespace, Name: name}, ReasonUnseen,
		"what happens on cluster %s cannot be seen from here: %s; ask there", name, lastOf(err))
	link.First, link.Next = inside.first, inside.pointless("spillway status -A")
	return nil, &link
}

// kustomization is how Flux applies something: from where, and what of it is not well.
func (a *asker) kustomization(ctx context.Context, ref Ref, _ bool) (answer, error) {
	k := &kustomizev1.Kustomization{}
	err := a.get(ctx, ref, k)
	if isNotFound(err) || apimeta.IsNoMatchError(err) {
		return a.notMade(ctx, ref, err)
	}
	if err != nil {
		return answer{}, err
	}
	ready := apimeta.FindStatusCondition(k.Status.Conditions, "Ready")
	link := a.link(ref, ReasonNotObserved, "Kustomization %s was not looked at %s: is Flux' kustomize-controller running?", ref.Name, asOf(ready))
	link.Phase, link.Next = rollout.PhaseWaiting, a.pointless("kubectl get pods -A -l app=kustomize-controller")
	found := answer{links: []Link{link}}
	own := &found.links[0]
	switch {
	case k.Spec.Suspend:
		own.Reason, own.Sentence = ReasonSuspended, a.place()+"Kustomization "+ref.Name+" is suspended: spec.suspend is set"
		own.Next = a.kubectl("patch", ref, "--type=merge", "-p", `'{"spec":{"suspend":false}}'`)
		return found, nil
	case ready == nil || ready.ObservedGeneration != k.Generation:
		return a.notBegun(ctx, k, found), nil
	}
	own.Reason, own.Since, own.Next = rollout.Reason(ready.Reason), momentOrNil(ready.LastTransitionTime.Time), a.kubectl("describe", ref)
	own.Sentence = a.place() + fmt.Sprintf("Kustomization %s is not ready: %s", ref.Name, firstLine(ready.Message))
	if ready.Status == metav1.ConditionTrue {
		own.Reason, own.Phase, own.Next = "", rollout.PhaseComplete, ""
		own.Sentence = a.place() + "Kustomization " + ref.Name + " has been applied, and all of it is well"
		return found, nil
	}
	return a.notApplied(ctx, k, found)
}

// asOf is of which Kustomization Flux has said nothing: of what it is now, or of any.
func asOf(ready *metav1.Condition) string {
	if ready == nil {
		return "yet"
	}
	return "as it is now"
}

// notBegun: Flux has said nothing of it as it is now, which it does not before there is
// a source.
func (a *asker) notBegun(ctx context.Context, k *kustomizev1.Kustomization, found answer) answer {
	if link := a.unfetched(ctx, k); link != nil {
		found.links[0].Next = ""
		found.links[0].Sentence = a.place() + "Kustomization " + k.Name + " has nothing to apply yet"
		found.links[0].Reason = ReasonSource
		found.links = append(found.links, *link)
	}
	return found
}

// notMade: nobody has made the Kustomization of what is assigned.
func (a *asker) notMade(ctx context.Context, ref Ref, err error) (answer, error) {
	link := a.link(ref, ReasonMissing, "there is no Kustomization %s in namespace %s, by which Flux would apply it", ref.Name, ref.Namespace)
	link.Next = a.pointless("kubectl get assemblages,kustomizations -n " + ref.Namespace)
	if apimeta.IsNoMatchError(err) {
		link.Sentence = a.place() + "Flux is not installed: there is no kind Kustomization"
		link.Next = a.pointless("flux install")
		return answer{links: []Link{link}}, nil
	}
	found := answer{links: []Link{link}}
	down, err := a.manages(ctx, Ref{Kind: kindManager, Name: "spillway"}, ref.Namespace)
	if err == nil && down.links[0].Reason == ReasonManagerDown {
		found = found.and(&down)
	}
	return found, nil
}

// firstLine is the beginning of a message that may have many.
func firstLine(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	return line
}

// notApplied goes to the source if that is why, to what it depends on, to what has
// refused it, or to the object that is not well.
func (a *asker) notApplied(ctx context.Context, k *kustomizev1.Kustomization, found answer) (answer, error) {
	if link := a.unfetched(ctx, k); link != nil {
		found.links[0].Next = ""
		found.links = append(found.links, *link)
		return found, nil
	}
	for _, dependency := range k.Spec.DependsOn {
		ref := Ref{Kind: kindKustomization, Namespace: k.Namespace, Name: dependency.Name}
		other := &kustomizev1.Kustomization{}
		if err := a.get(ctx, ref, other); err == nil && !apimeta.IsStatusConditionTrue(other.Status.Conditions, "Ready") {
			found.on = a.about(ref)
			return found, nil
		}
	}
	inside := a
	if remote := k.Spec.KubeConfig; remote != nil && remote.SecretRef != nil {
		var why *Link
		name := cluster.NameOf(remote.SecretRef.Name)
		if inside, why = a.enter(ctx, name, Ref{Kind: kindSecret, Namespace: k.Namespace, Name: remote.SecretRef.Name}); why != nil {
			found.links = append(found.links, *why)
			return found, nil
		}
	}
	return inside.firstOf(ctx, k, found)
}

// unfetched is the source of a Kustomization if that is not ready.
func (a *asker) unfetched(ctx context.Context, k *kustomizev1.Kustomization) *Link {
	s := &k.Spec.SourceRef
	ref := Ref{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}
	if ref.Namespace == "" {
		ref.Namespace = k.Namespace
	}
	u, err := a.readAny(ctx, ref)
	if isNotFound(err) {
		link := a.link(ref, ReasonSource, "%s %s, from which it is fetched, does not exist", ref.Kind, ref.Name)
		link.Next = a.pointless("kubectl get " + strings.ToLower(ref.Kind) + " -n " + ref.Namespace)
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
	link.Since, link.Next = momentOrNil(c.LastTransitionTime.Time), a.kubectl("describe", ref)
	return &link
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

// firstOf goes to the first object of a Kustomization that is not well.
func (a *asker) firstOf(ctx context.Context, k *kustomizev1.Kustomization, found answer) (answer, error) {
	if k.Status.Inventory != nil {
		for _, entry := range k.Status.Inventory.Entries[:min(len(k.Status.Inventory.Entries), maxObjects)] {
			ref, gvk, ok := applied(entry)
			if !ok {
				continue
			}
			if bad, err := a.isBad(ctx, ref, gvk); err != nil || bad {
				found.links[0].Next, found.on = "", a.about(ref)
				return found, nil //nolint:nilerr // what cannot be looked at is told of when it is asked about
			}
		}
	}
	ready := apimeta.FindStatusCondition(k.Status.Conditions, "Ready")
	if refused := a.refusal(ctx, refTo(kindKustomization, k), ready.Message); refused.links[0].Reason != ReasonRefused {
		found = found.and(refused)
	}
	return found, nil
}

// applied is what an entry of Flux' inventory names: NAMESPACE_NAME_GROUP_KIND, where a
// colon in the name, as the names of roles may have, is two underscores.
func applied(entry kustomizev1.ResourceRef) (Ref, schema.GroupVersionKind, bool) {
	namespace, rest, _ := strings.Cut(entry.ID, "_")
	i := strings.LastIndex(rest, "_")
	if i < 0 {
		return Ref{}, schema.GroupVersionKind{}, false
	}
	rest, kind := rest[:i], rest[i+1:]
	if i = strings.LastIndex(rest, "_"); i < 0 {
		return Ref{}, schema.GroupVersionKind{}, false
	}
	name, group := strings.ReplaceAll(rest[:i], "__", ":"), rest[i+1:]
	gvk := schema.GroupVersionKind{Group: group, Version: entry.Version, Kind: kind}
	return Ref{Kind: kind, Namespace: namespace, Name: name, APIVersion: foreign(group, entry.Version)}, gvk, true
}

// isBad is true of an object that is not there, or not well.
func (a *asker) isBad(ctx context.Context, ref Ref, gvk schema.GroupVersionKind) (bool, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	err := a.get(ctx, ref, u)
	if isNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return !a.isWell(ctx, ref, u), nil
}
