package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/agent"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/rollout"
)

// assigned asks about what a cluster is assigned by a module.
func (a *asker) assigned(module describe.Ref, name string) *question {
	ref := describe.Ref{Kind: describe.AssemblageKind(module.Kind), Namespace: module.Namespace, Name: name}
	return a.ask(ref, func(ctx context.Context, _ bool) (answer, error) { return a.sync(ctx, ref, module.Name) })
}

// assemblage continues with the first of its syncs that is not healthy.
func (a *asker) assemblage(ctx context.Context, ref describe.Ref, _ bool) (answer, error) {
	obj := model.NewAssemblage(modulesOf(ref.Kind))
	if err := a.get(ctx, ref, obj); err != nil {
		return answer{}, err
	}
	all := describe.AssemblageOf(obj)
	for _, sync := range all.Assigned {
		if r := report(&all, sync.Name); r == nil || r.State != fleetv1.StateSucceeded {
			return a.syncOf(ctx, ref, &all, sync.Name)
		}
	}
	return answer{Links: []Link{a.link(ref, "", "all %d modules are applied to cluster %s and healthy", len(all.Assigned), all.Cluster)}}, nil
}

// modulesOf is the kind of the modules that write assemblages of a kind.
func modulesOf(assemblage string) string {
	if assemblage == describe.KindRemote {
		return model.KindBootstrap
	}
	return model.KindModule
}

// sync is what became of a module on a cluster. The reference names the cluster; the
// assemblage may be named otherwise.
func (a *asker) sync(ctx context.Context, ref describe.Ref, name string) (answer, error) {
	all, err := a.assemblageOf(ctx, ref)
	if err != nil {
		return answer{}, err
	}
	if all == nil {
		link := a.link(ref, ReasonMissing, "%s for cluster %s not found", ref.Kind, ref.Name)
		return answer{Links: []Link{link}, Then: a.aboutManager(ref.Namespace)}, nil
	}
	ref.Name = all.GetName()
	return a.syncOf(ctx, ref, all, name)
}

func (a *asker) assemblageOf(ctx context.Context, ref describe.Ref) (*describe.Assemblage, error) {
	all, err := a.assemblages(ctx, ref.Namespace, modulesOf(ref.Kind))
	if i := slices.IndexFunc(all, func(s describe.Assemblage) bool { return s.Cluster == ref.Name }); i >= 0 {
		return &all[i], nil
	}
	return nil, err
}

// assemblages are those of a kind of modules in a namespace.
func (a *asker) assemblages(ctx context.Context, namespace, module string) ([]describe.Assemblage, error) {
	list := describe.NewAssemblages(module)
	if err := a.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list %ss: %w", describe.AssemblageKind(module), err)
	}
	return describe.AssemblagesIn(list), nil
}

// syncOf goes on to Flux: for a BootstrapModule on the hub, and otherwise on the cluster.
func (a *asker) syncOf(ctx context.Context, ref describe.Ref, all *describe.Assemblage, name string) (answer, error) {
	link := a.link(ref, rollout.ReasonProgressing, "cluster %s has not reported %s yet", all.Cluster, name)
	link.Ring, link.Phase, link.Next = manager.RingFleet, rollout.PhaseProgressing, a.kubectl("describe", ref)
	r := report(all, name)
	if r != nil {
		link.Reason, link.Phase = rollout.Reason(r.Reason), rollout.PhaseWaiting
		link.Sentence = a.place() + fmt.Sprintf("cluster %s reports %s as %s%s", all.Cluster, name, r.State, colon(r.Message))
		if r.LastTransitionTime != nil {
			link.Since = describe.TimeOrNil(r.LastTransitionTime.Time)
		}
	}
	found := answer{Links: []Link{link}}
	key := agent.Assemblage{Secret: secretOf(ref, all)}
	key.Namespace, key.Name = all.GetNamespace(), all.GetName()
	switch {
	case ref.Kind == describe.KindRemote:
		found.Then = a.about(a.madeInto(ctx, &key, all, name))
	case r != nil && r.State == fleetv1.StateUnreachable:
		found.Links = append(found.Links, a.unreachable(ref, all))
	default:
		inside, why := a.enter(ctx, all.Cluster, describe.Ref{Kind: describe.KindSecret, Namespace: ref.Namespace, Name: all.Secret})
		if why != nil {
			found.Links = append(found.Links, *why)
			return found, nil
		}
		found.Then = inside.about(inside.madeInto(ctx, &key, all, name))
	}
	return found, nil
}

// report is what a cluster has reported of a module, nil if nothing.
func report(all *describe.Assemblage, sync string) *fleetv1.SyncStatus {
	i := slices.IndexFunc(all.Status.Syncs, func(r fleetv1.SyncStatus) bool { return r.Name == sync })
	if i < 0 {
		return nil
	}
	return &all.Status.Syncs[i]
}

// madeInto is the Kustomization or HelmRelease that a sync was made into.
func (a *asker) madeInto(ctx context.Context, key *agent.Assemblage, all *describe.Assemblage, sync string) describe.Ref {
	if all.IsChart(sync) {
		return describe.Ref{Kind: helmv2.HelmReleaseKind, APIVersion: helmv2.GroupVersion.String(), Namespace: key.Namespace, Name: agent.KustomizationName(key, sync)}
	}
	return a.kustomizationOf(ctx, key, sync)
}

// kustomizationOf is the Kustomization that a sync was made into: by the name that it has
// kept, if it was made when names were others.
func (a *asker) kustomizationOf(ctx context.Context, key *agent.Assemblage, sync string) describe.Ref {
	ref := describe.Ref{Kind: describe.KindKustomization, Namespace: key.Namespace, Name: agent.KustomizationName(key, sync)}
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

func secretOf(ref describe.Ref, all *describe.Assemblage) string {
	if ref.Kind == describe.KindRemote {
		return all.Secret
	}
	return ""
}

// unreachable is a cluster that does not answer.
func (a *asker) unreachable(ref describe.Ref, all *describe.Assemblage) Link {
	link := a.link(describe.Ref{Kind: describe.KindSecret, Namespace: ref.Namespace, Name: all.Secret}, outcome.ReasonUnreachable,
		"cluster %s is unreachable with the address and credentials in Secret %s", all.Cluster, all.Secret)
	inside := a.inside(all.Cluster, link.Ref)
	link.First, link.Next = inside.First, inside.command("kubectl cluster-info")
	return link
}

// enter goes on in another cluster. If the caller may not read its kubeconfig, or it
// does not answer, the link says so, and how to ask there.
func (a *asker) enter(ctx context.Context, name string, secret describe.Ref) (*asker, *Link) {
	inside, s := a.inside(name, secret), &corev1.Secret{}
	err := a.get(ctx, secret, s)
	if err == nil && a.Dial == nil {
		err = errors.New("other clusters are not read")
	}
	if err == nil {
		inside.Client, err = a.Dial(s.Data["value"])
	}
	if err == nil {
		return inside, nil
	}
	link := a.link(describe.Ref{Kind: describe.KindCluster, Namespace: secret.Namespace, Name: name}, ReasonUnseen,
		"cluster %s cannot be read from here: %s", name, lastOf(err))
	link.First, link.Next = inside.First, inside.command("spillway status -A")
	return nil, &link
}

// kubeconfigFile is the file in the current folder for the kubeconfig of a cluster. A name that is
// none of an object could lead out of it, or be a command.
func kubeconfigFile(cluster string) string {
	if len(validation.IsDNS1123Subdomain(cluster)) > 0 {
		cluster = "cluster"
	}
	return cluster + ".kubeconfig"
}

// inside asks another cluster. Commands find it by a file with its kubeconfig, which must
// be written first: not by a pipe, which the kubectl that comes with gcloud cannot read.
func (a *asker) inside(name string, secret describe.Ref) *asker {
	w, file := a.World, kubeconfigFile(name)
	w.Client, w.Options.Namespaces, w.Flags = nil, nil, []string{"--kubeconfig", file}
	get := a.kubectl("get", secret, "-o", "go-template={{.data.value | base64decode}}")
	first := "(umask 077; " + get + " > " + file + ")"
	if a.First != "" {
		first = a.First + " && " + first
	}
	return &asker{World: w, In: name, First: first}
}
