package act

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/describe"
	fleetcluster "github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// pinning is which cluster is pinned or unpinned.
type pinning struct {
	client client.Client
	module Module
	on     string
	who    Author
}

// preparePin changes the assemblage of a cluster. There may be none.
func preparePin(ctx context.Context, c client.Client, r Request, who Author) (*Write, error) {
	p := &pinning{client: c, module: Module{r.Ref}, on: r.Cluster, who: who}
	module, assemblage, err := p.look(ctx)
	if err != nil {
		return nil, err
	}
	w := &Write{Word: ReasonUnpinned, Said: fmt.Sprintf("%s unpinned on cluster %s", p.module, p.on), About: p.module.reference(module)}
	if r.Verb == Pin {
		w.Word = ReasonPinned
		w.Said = fmt.Sprintf("%s pinned on cluster %s; unpin it with: %s", p.module, p.on, p.module.Command("fleet unpin", "--cluster", p.on))
	}
	if assemblage != nil {
		w.Object, w.before = assemblage, copyOf(assemblage)
	}
	switch {
	case r.Verb == Unpin:
		err = p.unpin(assemblage)
	case assemblage == nil:
		w.Object, err = p.pinBefore(ctx)
	default:
		err = p.pin(assemblage)
	}
	return w, err
}

func (p *pinning) unpin(assemblage client.Object) error {
	if slot := slotIn(assemblage, p.module.Name); slot == nil || *slot == nil {
		return fmt.Errorf("%s is not pinned on cluster %s; see its state with: %s", p.module, p.on, p.module.Command("explain", "--cluster", p.on))
	}
	*p.slot(assemblage) = nil
	dropEmpty(assemblage, p.module.Name)
	return nil
}

func (p *pinning) hold() *fleetv1.Hold {
	return &fleetv1.Hold{By: p.who.By, Reason: p.who.Reason, Since: &p.who.At}
}

func (p *pinning) pin(assemblage client.Object) error {
	slot := p.slot(assemblage)
	if h := *slot; h != nil && h.Reason == p.who.Reason {
		return fmt.Errorf("%s is already pinned on cluster %s%s", p.module, p.on, ByName(h.By))
	}
	*slot = p.hold()
	return nil
}

// look is the module, and the assemblage of the cluster, nil if there is none.
func (p *pinning) look(ctx context.Context) (module, assemblage client.Object, err error) {
	if p.on == "" {
		return nil, nil, errors.New("name the cluster with --cluster; " + p.module.Command("explain") + " lists those that wait")
	}
	module = model.New(p.module.Kind)
	module.SetNamespace(p.module.Namespace)
	module.SetName(p.module.Name)
	if err := Get(ctx, p.client, module); err != nil {
		return nil, nil, err
	}
	assemblage = model.NewAssemblage(p.module.Kind)
	err = p.client.Get(ctx, types.NamespacedName{Namespace: p.module.Namespace, Name: p.on}, assemblage)
	if apierrors.IsNotFound(err) {
		return module, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("get %s %s: %w", p.module.Assemblages(), p.on, err)
	}
	return module, assemblage, nil
}

// pinBefore is the assemblage of a cluster that was never assigned anything, if it exists.
func (p *pinning) pinBefore(ctx context.Context) (client.Object, error) {
	clusters, err := fleetcluster.ListLive(ctx, p.client, p.module.Namespace)
	if err != nil {
		return nil, fmt.Errorf("look for cluster %s: %w", p.on, err)
	}
	i := slices.IndexFunc(clusters, func(c fleetcluster.Cluster) bool { return c.Name == p.on })
	if i < 0 {
		return nil, fmt.Errorf("cluster %s not found in namespace %s; kubectl get secrets -n %s -l %s=true lists the clusters, and kubectl get clusters -n %s those of Cluster API",
			p.on, p.module.Namespace, p.module.Namespace, vocabulary.Cluster.Native, p.module.Namespace)
	}
	apiVersion, kind := clusters[i].Object.ToAPIVersionAndKind()
	kubeconfig := fleetv1.LocalReference{Name: clusters[i].Secret()}
	ref := &fleetv1.ClusterReference{APIVersion: apiVersion, Kind: kind, Name: p.on}
	assignment := fleetv1.Assignment{Name: p.module.Name, Hold: p.hold()}
	meta := metav1.ObjectMeta{Namespace: p.module.Namespace, Name: p.on}
	var assemblage client.Object = &fleetv1.ProxyAssemblage{ObjectMeta: meta, Spec: fleetv1.ProxyAssemblageSpec{
		KubeconfigRef: kubeconfig, ClusterRef: ref,
		Assemblage: fleetv1.ProxiedAssemblage{Syncs: []fleetv1.ProxySync{{NamedSync: fleetv1.NamedSync{Assignment: assignment}}}},
	}}
	if p.module.Kind == model.KindBootstrap {
		assemblage = &fleetv1.RemoteAssemblage{ObjectMeta: meta, Spec: fleetv1.RemoteAssemblageSpec{
			KubeconfigRef: kubeconfig, ClusterRef: ref, Syncs: []fleetv1.RemoteSync{{Assignment: assignment}},
		}}
	}
	return assemblage, nil
}

// slot is where the hold of the module stands in an assemblage; it is made where
// there is none.
func (p *pinning) slot(assemblage client.Object) **fleetv1.Hold {
	if h := slotIn(assemblage, p.module.Name); h != nil {
		return h
	}
	assignment := fleetv1.Assignment{Name: p.module.Name}
	switch a := assemblage.(type) {
	case *fleetv1.ProxyAssemblage:
		a.Spec.Assemblage.Syncs = append(a.Spec.Assemblage.Syncs, fleetv1.ProxySync{NamedSync: fleetv1.NamedSync{Assignment: assignment}})
	case *fleetv1.RemoteAssemblage:
		a.Spec.Syncs = append(a.Spec.Syncs, fleetv1.RemoteSync{Assignment: assignment})
	}
	return slotIn(assemblage, p.module.Name)
}

// slotIn is where the hold of a module stands, nil if the assemblage does not have the module.
func slotIn(assemblage client.Object, module string) **fleetv1.Hold {
	all := describe.AssemblageOf(assemblage)
	if s := all.Assignment(module); s != nil {
		return &s.Hold
	}
	return nil
}

// dropEmpty removes a sync that had nothing but a hold.
func dropEmpty(assemblage client.Object, module string) {
	switch a := assemblage.(type) {
	case *fleetv1.ProxyAssemblage:
		a.Spec.Assemblage.Syncs = slices.DeleteFunc(a.Spec.Assemblage.Syncs, func(s fleetv1.ProxySync) bool { return s.Name == module && s.Source == nil })
	case *fleetv1.RemoteAssemblage:
		a.Spec.Syncs = slices.DeleteFunc(a.Spec.Syncs, func(s fleetv1.RemoteSync) bool {
			return s.Name == module && s.Source == nil && s.SourceRef == nil
		})
	}
}
