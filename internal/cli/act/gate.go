package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/describe"
	fleetcluster "github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

func prepareVerdict(ctx context.Context, c client.Client, r Request, who Author) (*Write, error) {
	verdict, word := metav1.ConditionTrue, reasons.Approved
	if r.Verb == Refuse {
		verdict, word = metav1.ConditionFalse, reasons.Refused
	}
	gate, err := find(ctx, c, r, verdict)
	if err != nil {
		return nil, err
	}
	w := &Write{
		Object: gate, before: gate.DeepCopy(), verdict: true, Word: word,
		Said: fmt.Sprintf("gate %s of %s is %s for %s", gate.Spec.Gate, describe.UnitOfGate(gate), past(r.Verb), strings.ToLower(gate.Spec.TargetRef.Kind)+"/"+gate.Spec.TargetRef.Name),
	}
	SetVerdict(gate, verdict, who)
	if owner := metav1.GetControllerOf(gate); owner != nil {
		w.About = corev1.ObjectReference{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: gate.Namespace, Name: owner.Name, UID: owner.UID}
	}
	return w, nil
}

// past is what a gate is after its verdict.
func past(v Verb) string { return string(v) + "d" }

// find returns the gate that is meant: by its name, or the only one of a rollout that is not
// decided so yet.
func find(ctx context.Context, c client.Client, r Request, verdict metav1.ConditionStatus) (*v1alpha1.RolloutGate, error) {
	ref := r.Ref
	if ref.Kind == describe.KindGate {
		g := &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name}}
		if err := Get(ctx, c, g); err != nil {
			return nil, err
		}
		if Decided(g) == verdict {
			return nil, fmt.Errorf("gate/%s is %s already", g.Name, past(r.Verb))
		}
		return g, nil
	}
	list := &v1alpha1.RolloutGateList{}
	if err := c.List(ctx, list, client.InNamespace(ref.Namespace)); err != nil {
		return nil, fmt.Errorf("list RolloutGates: %w", err)
	}
	gates := slices.DeleteFunc(list.Items, func(g v1alpha1.RolloutGate) bool {
		return g.Spec.TargetRef.Kind != ref.Kind || g.Spec.TargetRef.Name != ref.Name || Decided(&g) == verdict || g.DeletionTimestamp != nil
	})
	if len(gates) > 1 { // those that were created in advance, and those that were decided otherwise
		if waiting := slices.DeleteFunc(slices.Clone(gates), func(g v1alpha1.RolloutGate) bool {
			return g.Spec.ReachedAt == nil || Decided(&g) != metav1.ConditionUnknown
		}); len(waiting) > 0 {
			gates = waiting
		}
	}
	switch len(gates) {
	case 0:
		if err := command.Missing(ctx, c, ref); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s has no gate to %s; spillway explain %s -n %s says what it waits for", ref, r.Verb, ref, ref.Namespace)
	case 1:
		return &gates[0], nil
	default:
		return nil, fmt.Errorf("%s has several gates; choose one of %s", ref, gatesText(gates))
	}
}

func gatesText(gates []v1alpha1.RolloutGate) string {
	texts := make([]string, len(gates))
	for i := range gates {
		texts[i] = "gate/" + gates[i].Name + " (" + describe.UnitOfGate(&gates[i]) + ")"
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

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
