package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli/change"
	fleetcluster "github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// pin is which cluster is pinned or unpinned.
type pin struct {
	*fleeter

	on string
	// changed is the assemblage that was written.
	changed client.Object
}

func newFleetPin(f *fleeter) *cobra.Command {
	p := &pin{fleeter: f}
	return p.about(f.gives(f.command("pin", "--cluster CLUSTER", "Keep a cluster at its revision while the rollout continues on the others",
		`shop --cluster c7 -n clusters --reason "its disk is full"`, p.pin)))
}

func newFleetUnpin(f *fleeter) *cobra.Command {
	p := &pin{fleeter: f}
	return p.about(f.gives(f.command("unpin", "--cluster CLUSTER", "Let a pinned cluster follow the rollout again",
		"shop --cluster c7 -n clusters", p.unpin)))
}

// about makes the command one about a cluster.
func (p *pin) about(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&p.on, "cluster", "", "the cluster")
	return cmd
}

func (p *pin) unpin(ctx context.Context) error {
	return p.steer(ctx, change.ReasonUnpinned, p.unpinNow, fmt.Sprintf("%s unpinned on cluster %s", p.module, p.on))
}

func (p *pin) unpinNow(ctx context.Context, assemblage client.Object) error {
	if assemblage == nil || !isPinned(assemblage, p.module.Name) {
		return fmt.Errorf("%s is not pinned on cluster %s; see its state with: %s", p.module, p.on, p.module.command("explain", "--cluster", p.on))
	}
	return p.change(ctx, assemblage, func() error {
		*p.slot(assemblage) = nil
		dropEmpty(assemblage, p.module.Name)
		return nil
	})
}

func (p *pin) pin(ctx context.Context) error {
	return p.steer(ctx, change.ReasonPinned, p.pinNow, fmt.Sprintf("%s pinned on cluster %s; unpin it with: %s",
		p.module, p.on, p.module.command("fleet unpin", "--cluster", p.on)))
}

// steer changes the assemblage of the cluster, and tells of it. There may be none.
func (p *pin) steer(ctx context.Context, word rollout.Reason, edit func(ctx context.Context, assemblage client.Object) error, said string) error {
	var module client.Object
	err := change.Retry(p.module.assemblages()+"/"+p.on, func() error {
		seen, assemblage, err := p.look(ctx)
		if err != nil {
			return err
		}
		module = seen
		return edit(ctx, assemblage)
	})
	if err != nil {
		return err
	}
	return p.done(ctx, module, p.changed, word, said)
}

func (p *pin) pinNow(ctx context.Context, assemblage client.Object) error {
	hold := &fleetv1.Hold{By: p.who.By, Reason: p.who.Reason, Since: &p.who.At}
	if assemblage == nil {
		return p.pinBefore(ctx, hold)
	}
	return p.change(ctx, assemblage, func() error {
		slot := p.slot(assemblage)
		if h := *slot; h != nil && h.Reason == hold.Reason {
			return fmt.Errorf("%s is already pinned on cluster %s%s", p.module, p.on, change.ByName(h.By))
		}
		*slot = hold
		return nil
	})
}

// look is the module, and the assemblage of the cluster, nil if there is none.
func (p *pin) look(ctx context.Context) (module, assemblage client.Object, err error) {
	if p.on == "" {
		return nil, nil, errors.New("name the cluster with --cluster; " + p.module.command("explain") + " lists those that wait")
	}
	if module, err = p.get(ctx); err != nil {
		return nil, nil, err
	}
	assemblage = model.NewAssemblage(p.module.Kind)
	err = p.client.Get(ctx, types.NamespacedName{Namespace: p.module.Namespace, Name: p.on}, assemblage)
	if apierrors.IsNotFound(err) {
		return module, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("get %s %s: %w", p.module.assemblages(), p.on, err)
	}
	return module, assemblage, nil
}

// pinBefore pins a cluster that was never assigned anything, if it exists.
func (p *pin) pinBefore(ctx context.Context, hold *fleetv1.Hold) error {
	clusters, err := fleetcluster.ListLive(ctx, p.client, p.module.Namespace)
	if err != nil {
		return fmt.Errorf("look for cluster %s: %w", p.on, err)
	}
	i := slices.IndexFunc(clusters, func(c fleetcluster.Cluster) bool { return c.Name == p.on })
	if i < 0 {
		return fmt.Errorf("cluster %s not found in namespace %s; kubectl get secrets -n %s -l %s=true lists the clusters, and kubectl get clusters -n %s those of Cluster API",
			p.on, p.module.Namespace, p.module.Namespace, vocabulary.Cluster.Native, p.module.Namespace)
	}
	apiVersion, kind := clusters[i].Object.ToAPIVersionAndKind()
	kubeconfig := fleetv1.LocalReference{Name: clusters[i].Secret()}
	ref := &fleetv1.ClusterReference{APIVersion: apiVersion, Kind: kind, Name: p.on}
	assignment := fleetv1.Assignment{Name: p.module.Name, Hold: hold}
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
	p.changed = assemblage
	if err := p.client.Create(ctx, assemblage, client.FieldOwner(change.FieldOwner)); err != nil {
		return fmt.Errorf("create %s/%s: %w", p.module.assemblages(), p.on, err)
	}
	return nil
}

// change changes an assemblage, if it is as it was seen.
func (p *pin) change(ctx context.Context, assemblage client.Object, edit func() error) error {
	before, ok := assemblage.DeepCopyObject().(client.Object)
	if !ok {
		return errors.New("a copy of an object is not an object")
	}
	if err := edit(); err != nil {
		return err
	}
	p.changed = assemblage
	return change.Write(ctx, p.client, assemblage, before)
}

func isPinned(assemblage client.Object, module string) bool {
	slot := slotIn(assemblage, module)
	return slot != nil && *slot != nil
}

// slot is where the hold of the module stands in an assemblage; it is made where
// there is none.
func (p *pin) slot(assemblage client.Object) **fleetv1.Hold {
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

func slotIn(assemblage client.Object, module string) **fleetv1.Hold {
	switch a := assemblage.(type) {
	case *fleetv1.ProxyAssemblage:
		for i := range a.Spec.Assemblage.Syncs {
			if s := &a.Spec.Assemblage.Syncs[i]; s.Name == module {
				return &s.Hold
			}
		}
	case *fleetv1.RemoteAssemblage:
		for i := range a.Spec.Syncs {
			if s := &a.Spec.Syncs[i]; s.Name == module {
				return &s.Hold
			}
		}
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
