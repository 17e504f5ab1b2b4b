package hub

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/gates/ask"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Directory is which clusters there are; [cluster.Directory] is one.
type Directory interface {
	// List are the clusters of a namespace, in any order. An error is that they are
	// not known (yet), which is not the same as that there are none.
	List(ctx context.Context, namespace string) ([]cluster.Cluster, error)
	// Subscribe has a function called with each cluster that may have changed, and
	// with an empty name when all of them may have.
	Subscribe(changed func(cluster types.NamespacedName))
}

// driftsKept is how much more is remembered than is needed.
const driftsKept = 100

// observer does all the reads of the ring.
type observer struct {
	options Options
	kind    *kind
	// cached reads what the informers hold, live asks the API server.
	cached, live client.Reader
	clusters     Directory
	// kinds says which kinds the hub knows, nil if that is not to be asked.
	kinds apimeta.RESTMapper
}

// view holds the assemblages of a namespace, read once. What is in it is never changed.
type view struct {
	items []client.Object
	// asOf is how new it is at least.
	asOf string
}

// snapshot is what a pass sees of a module.
type snapshot struct {
	model.Observed

	key types.NamespacedName
	// object is the module itself, nil if there is none.
	object client.Object
	// templates are what the revisions say, with what their tags turned out to be.
	templates map[string]*model.Variants
	// unowned is [Observed.Unowned] itself.
	unowned *spillway.ModuleRevision
	// revisions are the ModuleRevisions themselves, in which gates are kept.
	revisions map[string]*spillway.ModuleRevision
	// clusterBudgets are the ClusterBudgets themselves.
	clusterBudgets map[string]*spillway.ClusterBudget
}

// observe reads a module: first what was decided before, then what the next
// decision is about, so that the latter is not older. Where the cache is not good
// enough, the API server itself is asked, once in a reconcile.
func (o *observer) observe(ctx context.Context, m *memory, live bool) (snapshot, error) {
	s := snapshot{key: m.key}
	s.Now, s.By, s.Live, s.Looks = o.options.Now(), o.options.By, live, o.options.Looks && o.kind.name == model.KindModule
	s.Refusals = m.Refusals(s.Now)
	if err := o.module(ctx, &s, m); err != nil {
		return s, err
	}
	if err := o.budgets(ctx, &s); err != nil || s.object == nil && !s.hasNoted() {
		return s, err
	}
	if err := o.revisions(ctx, &s, m); err != nil {
		return s, err
	}
	if err := o.gates(ctx, &s, m); err != nil {
		return s, err
	}
	if err := o.knownClusters(ctx, &s); err != nil {
		return s, err
	}
	v, asOf, err := o.assemblages(ctx, m, live)
	if err != nil {
		return s, err
	}
	s.AsOf = asOf
	o.records(&s, m, v)
	s.LacksFlux = o.lacksFlux(&s)
	return s, nil
}

// lacksFlux is true if nothing that the hub has assigned by a BootstrapModule can be applied
// there. That is asked only while something has not been reported.
func (o *observer) lacksFlux(s *snapshot) bool {
	isSilent := func(r model.Record) bool { return r.Assigned && !r.Reported }
	if o.kind.name != model.KindBootstrap || o.kinds == nil || !slices.ContainsFunc(s.Records, isSilent) {
		return false
	}
	_, err := o.kinds.RESTMapping(decision.KindOfFlux.GroupKind(), decision.KindOfFlux.Version)
	return apimeta.IsNoMatchError(err)
}

func (o *observer) module(ctx context.Context, s *snapshot, m *memory) error {
	object := model.New(o.kind.name)
	err := o.cached.Get(ctx, s.key, object, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		m.Newest(nil, s.Now)
		return nil
	}
	if err != nil {
		return fmt.Errorf("get %s %s: %w", o.kind.name, s.key.Name, err)
	}
	s.object = m.Newest(object, s.Now)
	spec, status := model.Parts(s.object)
	s.Module = model.Module{
		Kind: o.kind.name, Namespace: s.key.Namespace, Name: s.key.Name, UID: s.object.GetUID(),
		ResourceVersion: s.object.GetResourceVersion(), Generation: s.object.GetGeneration(),
		Deleting:  s.object.GetDeletionTimestamp() != nil,
		Finalized: slices.Contains(s.object.GetFinalizers(), vocabulary.ModuleFinalizer),
		Steered:   model.SteeringOf(s.object), Retry: model.RetryOf(s.object), Writer: model.WriterOf(s.object), RemovalApproval: vocabulary.ApproveRemoval.Get(s.object.GetAnnotations()), Spec: *spec, Status: *status,
	}
	return nil
}

func (o *observer) gates(ctx context.Context, s *snapshot, m *memory) error {
	list := &spillway.RolloutGateList{}
	err := o.cached.List(ctx, list, o.mine(s.key)...)
	if err != nil {
		return fmt.Errorf("list the RolloutGates of %s: %w", s.key.Name, err)
	}
	for i := range list.Items {
		g := &list.Items[i]
		m.Observed(ring.Change{Act: string(decision.CreateGate), Object: g.Name})
		if r := s.revisions[g.Spec.Revision]; r != nil && metav1.IsControlledBy(g, r) { // no decision of another time
			s.Gates = append(s.Gates, gateOf(g))
		}
	}
	return nil
}

func (o *observer) revisions(ctx context.Context, s *snapshot, m *memory) error {
	list := &spillway.ModuleRevisionList{}
	err := o.cached.List(ctx, list, o.mine(s.key)...)
	if err != nil {
		return fmt.Errorf("list the ModuleRevisions of %s: %w", s.key.Name, err)
	}
	s.templates, s.revisions = map[string]*model.Variants{}, map[string]*spillway.ModuleRevision{}
	for i := range list.Items {
		r := &list.Items[i]
		m.Observed(ring.Change{Act: string(decision.CreateRevision), Object: r.Name})
		m.Observed(ring.Change{Act: string(decision.AdoptRevision), Object: r.Name})
		if !metav1.IsControlledBy(r, s.object) {
			continue // that of a module that was deleted
		}
		pinned := model.Pinned(&r.Spec.Template, r.Status.Resolved)
		s.templates[r.Name], s.revisions[r.Name] = model.VariantsOf(pinned), r
		s.Revisions = append(s.Revisions, model.Revision{
			Name: r.Name, UID: r.UID, ResourceVersion: r.ResourceVersion, Number: r.Spec.Number,
			Deleting: r.DeletionTimestamp != nil, Resolved: r.Status.Resolved, Pinned: pinned != &r.Spec.Template,
			Variants: s.templates[r.Name], Written: model.VariantsOf(&r.Spec.Template),
		})
	}
	return o.unowned(ctx, s)
}

// mine finds what belongs to a module. The index spares looking at what does not;
// whether it does is decided by its owner.
func (o *observer) mine(key types.NamespacedName) []client.ListOption {
	return []client.ListOption{
		client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy, client.MatchingFields{moduleIndex: o.kind.name + "/" + key.Name},
	}
}

// unowned finds which ModuleRevision has the name of the one that the module needs, if
// it is not the module's.
func (o *observer) unowned(ctx context.Context, s *snapshot) error {
	name, r := model.RevisionName(s.Module.Kind, s.Module.Name, s.Module.Template()), &spillway.ModuleRevision{}
	if s.revisions[name] != nil {
		return nil
	}
	err := o.cached.Get(ctx, types.NamespacedName{Namespace: s.key.Namespace, Name: name}, r)
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("read ModuleRevision %s: %w", name, err)
	}
	s.unowned, s.Unowned = r, &model.Unowned{Name: name, Whose: "without an owner, and does not say what the module does"}
	owner := metav1.GetControllerOf(r)
	switch {
	case r.DeletionTimestamp != nil:
		s.Unowned.Whose = "being deleted"
	case owner != nil:
		s.Unowned.Whose = fmt.Sprintf("that of %s %s with UID %s", owner.Kind, owner.Name, owner.UID)
	default:
		s.Unowned.Orphaned = r.Spec.ModuleRef == spillway.ModuleReference{Kind: o.kind.name, Name: s.key.Name} &&
			model.RevisionName(o.kind.name, s.key.Name, r.Spec.Template) == name
	}
	return nil
}

// gateOf reads what was decided.
func gateOf(g *spillway.RolloutGate) model.Gate {
	gate := model.Gate{
		Name: g.Name, Revision: g.Spec.Revision, Stage: g.Spec.Stage, Gate: g.Spec.Gate, When: v1alpha1.GateTime(g.Spec.When),
		Reached: g.Spec.ReachedAt != nil, Rolls: ask.Rolls(g), UID: g.UID, ResourceVersion: g.ResourceVersion,
	}
	gate.Verdict, gate.Message, gate.Since = ask.Verdict(g)
	return gate
}

func (o *observer) knownClusters(ctx context.Context, s *snapshot) error {
	clusters, err := o.clusters.List(ctx, s.key.Namespace)
	if err != nil {
		return fmt.Errorf("list the clusters: %w", err)
	}
	s.Clusters = make([]model.Cluster, len(clusters))
	for i := range clusters {
		s.Clusters[i] = clusterOf(&clusters[i])
	}
	if o.options.Facts == nil || !decision.NeedsFacts(&s.Module) {
		return nil
	}
	for i := range clusters {
		s.Clusters[i].Facts = o.options.Facts.Of(secretOf(s, clusters[i].Name))
	}
	return nil
}

func secretOf(s *snapshot, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: s.key.Namespace, Name: cluster.SecretName(name)}
}

// ask has clusters asked what they serve. The module is woken when that is known.
func (o *observer) ask(s *snapshot, names []string) {
	for _, name := range names {
		if o.options.Facts != nil {
			o.options.Facts.Ask(secretOf(s, name))
		}
	}
}

func clusterOf(c *cluster.Cluster) model.Cluster {
	apiVersion, kind := c.Object.ToAPIVersionAndKind()
	found := model.Cluster{
		Name: c.Name, UID: c.UID, Labels: c.Labels, Ready: c.Ready, Deleting: c.Deleting,
		Kubeconfig: v1alpha1.LocalReference{Name: c.Secret()},
		Ref:        v1alpha1.ClusterReference{APIVersion: apiVersion, Kind: kind, Name: c.Name},
	}
	if c.Object == cluster.GVK { // a Secret may be replaced by another, without anything being taken away
		found.Owner = &metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: c.Name, UID: c.UID}
	}
	return found
}

// assemblages reads the assemblages from the cache, or from the API server itself.
func (o *observer) assemblages(ctx context.Context, m *memory, live bool) (*view, string, error) {
	if live && m.live != nil {
		return m.live, m.live.asOf, nil
	}
	v, err := o.view(ctx, o.cached, m.key.Namespace)
	if err != nil {
		return nil, "", err
	}
	m.asOf = ring.Newer(m.asOf, v.asOf)
	if !live {
		return v, m.asOf, nil
	}
	fresh, err := o.view(ctx, o.live, m.key.Namespace)
	if err != nil {
		return nil, "", err
	}
	if fresh.isAs(v) { // the cache is as new; that only could not be known
		m.asOf = ring.Newer(m.asOf, fresh.asOf)
	}
	m.live = fresh
	return fresh, fresh.asOf, nil
}

// isAs is true if two views are of the same objects.
func (v *view) isAs(other *view) bool {
	versions := make(map[types.UID]string, len(v.items))
	for _, item := range v.items {
		versions[item.GetUID()] = item.GetResourceVersion()
	}
	return len(v.items) == len(other.items) && !slices.ContainsFunc(other.items, func(item client.Object) bool {
		return versions[item.GetUID()] != item.GetResourceVersion()
	})
}

// records finds what the assemblages say of the module: that of a cluster's name is
// the one that it writes.
func (o *observer) records(s *snapshot, m *memory, v *view) {
	s.Records, s.Foreign = make([]model.Record, 0, len(v.items)), map[string]bool{}
	if len(m.drifts) > driftsKept+len(v.items)*2 { // assemblages come and go
		clear(m.drifts)
	}
	for _, item := range v.items {
		a := assembledOf(item)
		name := a.cluster()
		if item.GetName() != name {
			if _, _, assigned := a.sync(s.key.Name); assigned {
				s.Foreign[name] = true
			}
			continue
		}
		r := recordOf(&a, s.key.Name)
		if r.Assigned {
			o.compare(s, m, &a, &r)
		}
		if version, ours := m.foreign[name]; ours && !ring.Older(version, r.ResourceVersion) { // what is older shows what it was before
			s.Foreign[name] = true
		}
		s.Records = append(s.Records, r)
	}
}

func (o *observer) view(ctx context.Context, r client.Reader, namespace string) (*view, error) {
	list := o.kind.list()
	if err := r.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list %ss: %w", o.kind.assemblage, err)
	}
	v := &view{items: itemsOf(list), asOf: list.GetResourceVersion()}
	for _, item := range v.items {
		v.asOf = ring.Newer(v.asOf, item.GetResourceVersion())
	}
	return v, nil
}
