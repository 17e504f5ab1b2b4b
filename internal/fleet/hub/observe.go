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
	"github.com/spillway-dev/spillway/internal/fleet/agent"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
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
	// unindexed is true if what is called cached has no index by module.
	unindexed bool
	clusters  Directory
}

// view is one look at the assemblages of a namespace. Nobody changes what is in it.
type view struct {
	items []client.Object
	// asOf is how new it is at least.
	asOf string
}

// sight is what a pass sees of a module.
type sight struct {
	Observed

	key types.NamespacedName
	// object is the module itself, nil if there is none.
	object client.Object
	// templates are what the revisions say, with what their tags turned out to be.
	templates map[string]*v1alpha1.TemplateSpec
	// stranger is [Observed.Stranger] itself.
	stranger *spillway.ModuleRevision
	// revisions are the ModuleRevisions themselves, in which gates are kept.
	revisions map[string]*spillway.ModuleRevision
}

// observe looks at a module: first at what was decided before, then at what the next
// decision is about, so that the latter is not older. Where the cache is not good
// enough, the API server itself is asked, once in a reconcile.
func (o *observer) observe(ctx context.Context, m *memory, live bool) (sight, error) {
	s := sight{key: m.key}
	s.Now, s.Live = o.options.Now(), live
	m.expire(s.Now)
	s.Refusals = m.due()
	if err := o.module(ctx, &s, m); err != nil || s.object == nil {
		return s, err
	}
	if err := o.revisions(ctx, &s, m); err != nil {
		return s, err
	}
	if err := o.gates(ctx, &s, m); err != nil {
		return s, err
	}
	if err := o.fleet(ctx, &s); err != nil {
		return s, err
	}
	v, asOf, err := o.look(ctx, m, live)
	if err != nil {
		return s, err
	}
	s.AsOf = asOf
	o.records(&s, m, v)
	return s, nil
}

func (o *observer) module(ctx context.Context, s *sight, m *memory) error {
	object := New(o.kind.name)
	err := o.cached.Get(ctx, s.key, object, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		m.object = nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("get %s %s: %w", o.kind.name, s.key.Name, err)
	}
	s.object = m.newest(object)
	spec, status := Parts(s.object)
	s.Module = Module{
		Kind: o.kind.name, Namespace: s.key.Namespace, Name: s.key.Name, UID: s.object.GetUID(),
		ResourceVersion: s.object.GetResourceVersion(), Generation: s.object.GetGeneration(),
		Deleting:  s.object.GetDeletionTimestamp() != nil,
		Finalized: slices.Contains(s.object.GetFinalizers(), vocabulary.ModuleFinalizer),
		Steered:   SteeringOf(s.object), Spec: *spec, Status: *status,
	}
	return nil
}

// mine finds what belongs to a module. The index spares looking at what does not;
// whether it does is decided by its owner.
func (o *observer) mine(key types.NamespacedName) []client.ListOption {
	options := []client.ListOption{client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy}
	if !o.unindexed {
		options = append(options, client.MatchingFields{moduleIndex: o.kind.name + "/" + key.Name})
	}
	return options
}

func (o *observer) revisions(ctx context.Context, s *sight, m *memory) error {
	list := &spillway.ModuleRevisionList{}
	err := o.cached.List(ctx, list, o.mine(s.key)...)
	if err != nil {
		return fmt.Errorf("list the ModuleRevisions of %s: %w", s.key.Name, err)
	}
	s.templates, s.revisions = map[string]*v1alpha1.TemplateSpec{}, map[string]*spillway.ModuleRevision{}
	for i := range list.Items {
		r := &list.Items[i]
		m.seen(CreateRevision, r.Name)
		m.seen(AdoptRevision, r.Name)
		if !metav1.IsControlledBy(r, s.object) {
			continue // that of a module that was deleted
		}
		s.templates[r.Name], s.revisions[r.Name] = exact(&r.Spec.Template, r.Status.Resolved), r
		s.Revisions = append(s.Revisions, Revision{
			Name: r.Name, UID: r.UID, ResourceVersion: r.ResourceVersion, Number: r.Spec.Number,
			Deleting: r.DeletionTimestamp != nil, Resolved: r.Status.Resolved,
		})
	}
	return o.stranger(ctx, s)
}

// stranger finds who has the name of the revision that the module needs, if not the
// module itself.
func (o *observer) stranger(ctx context.Context, s *sight) error {
	name, r := RevisionName(s.Module.Kind, s.Module.Name, s.Module.template()), &spillway.ModuleRevision{}
	if s.revisions[name] != nil {
		return nil
	}
	err := o.cached.Get(ctx, types.NamespacedName{Namespace: s.key.Namespace, Name: name}, r)
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("look at ModuleRevision %s: %w", name, err)
	}
	s.stranger, s.Stranger = r, &Stranger{Name: name, Whose: "nobody's, and does not say what the module does"}
	owner := metav1.GetControllerOf(r)
	switch {
	case r.DeletionTimestamp != nil:
		s.Stranger.Whose = "being deleted"
	case owner != nil:
		s.Stranger.Whose = fmt.Sprintf("that of %s %s with UID %s", owner.Kind, owner.Name, owner.UID)
	default:
		s.Stranger.Orphaned = r.Spec.ModuleRef == spillway.ModuleReference{Kind: o.kind.name, Name: s.key.Name} &&
			RevisionName(o.kind.name, s.key.Name, r.Spec.Template) == name
	}
	return nil
}

func (o *observer) gates(ctx context.Context, s *sight, m *memory) error {
	list := &spillway.RolloutGateList{}
	err := o.cached.List(ctx, list, o.mine(s.key)...)
	if err != nil {
		return fmt.Errorf("list the RolloutGates of %s: %w", s.key.Name, err)
	}
	for i := range list.Items {
		g := &list.Items[i]
		m.seen(CreateGate, g.Name)
		if r := s.revisions[g.Spec.Revision]; r != nil && metav1.IsControlledBy(g, r) { // no decision of another time
			s.Gates = append(s.Gates, gateOf(g))
		}
	}
	return nil
}

// gateOf reads what was decided.
func gateOf(g *spillway.RolloutGate) Gate {
	gate := Gate{
		Name: g.Name, Revision: g.Spec.Revision, Stage: g.Spec.Stage, Gate: g.Spec.Gate, When: v1alpha1.GateTime(g.Spec.When),
		Verdict: rollout.Pending, Since: g.CreationTimestamp.Time,
	}
	c := apimeta.FindStatusCondition(g.Status.Conditions, spillway.GatePassed)
	if c == nil {
		return gate
	}
	gate.Message = c.Message
	switch c.Status {
	case metav1.ConditionTrue:
		gate.Verdict, gate.Since = rollout.Passed, c.LastTransitionTime.Time
	case metav1.ConditionFalse:
		gate.Verdict, gate.Since = rollout.Refused, c.LastTransitionTime.Time
	default:
	}
	return gate
}

func (o *observer) fleet(ctx context.Context, s *sight) error {
	clusters, err := o.clusters.List(ctx, s.key.Namespace)
	if err != nil {
		return fmt.Errorf("list the clusters: %w", err)
	}
	s.Clusters = make([]Cluster, len(clusters))
	for i := range clusters {
		s.Clusters[i] = clusterOf(&clusters[i])
	}
	return nil
}

func clusterOf(c *cluster.Cluster) Cluster {
	apiVersion, kind := c.Object.ToAPIVersionAndKind()
	found := Cluster{
		Name: c.Name, UID: c.UID, Labels: c.Labels, Ready: c.Ready, Deleting: c.Deleting,
		Kubeconfig: v1alpha1.LocalReference{Name: c.Secret()},
		Ref:        v1alpha1.ClusterReference{APIVersion: apiVersion, Kind: kind, Name: c.Name},
	}
	if c.Object == cluster.GVK { // a Secret may be replaced by another, without anything being taken away
		found.Owner = &metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: c.Name, UID: c.UID}
	}
	return found
}

// look reads the assemblages from the cache, or from the API server itself.
func (o *observer) look(ctx context.Context, m *memory, live bool) (*view, string, error) {
	if live && m.live != nil {
		return m.live, m.live.asOf, nil
	}
	v, err := o.view(ctx, o.cached, m.key.Namespace)
	if err != nil {
		return nil, "", err
	}
	m.asOf = newer(m.asOf, v.asOf)
	if !live {
		return v, m.asOf, nil
	}
	fresh, err := o.view(ctx, o.live, m.key.Namespace)
	if err != nil {
		return nil, "", err
	}
	if fresh.isAs(v) { // the cache is as new; that only could not be known
		m.asOf = newer(m.asOf, fresh.asOf)
	}
	m.live = fresh
	return fresh, fresh.asOf, nil
}

func (o *observer) view(ctx context.Context, r client.Reader, namespace string) (*view, error) {
	list := o.kind.list()
	if err := r.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list %ss: %w", o.kind.assemblage, err)
	}
	v := &view{items: itemsOf(list), asOf: list.GetResourceVersion()}
	for _, item := range v.items {
		v.asOf = newer(v.asOf, item.GetResourceVersion())
	}
	return v, nil
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
func (o *observer) records(s *sight, m *memory, v *view) {
	s.Records, s.Foreign = make([]Record, 0, len(v.items)), map[string]bool{}
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
		if version, ours := m.foreign[name]; ours && !isOlder(version, r.ResourceVersion) { // what is older shows what it was before
			s.Foreign[name] = true
		}
		s.Records = append(s.Records, r)
	}
}

// compare finds out whether a sync is what its revision says, unless that is known of
// this version of the assemblage.
func (o *observer) compare(s *sight, m *memory, a *assembled, r *Record) {
	policy := s.Module.deletionPolicy()
	known := m.drifts[r.UID]
	if known.version == r.ResourceVersion && known.policy == string(policy) && known.known && known.resolved == s.resolved(known.revision) {
		r.Drifted, r.Edited, r.Follows, r.Tagged, r.Revision = known.drifted, known.edited, known.follows, known.tagged, known.revision
		r.Stale = s.isStale(a, r, known.corrected)
		return
	}
	o.adopt(s, a, r)
	revision := s.revisions[r.Revision]
	if revision == nil {
		return // nobody knows what it should be
	}
	assignment, sync, _ := a.sync(s.key.Name)
	wanted := o.kind.assignment(&s.Module, r.Revision, assignment.AssignedAt)
	r.Drifted = !o.kind.says(sync, wanted, s.templates[r.Revision])
	r.Edited = r.Drifted && !o.kind.says(sync, *assignment, s.templates[r.Revision])
	if r.Drifted && o.kind.says(sync, wanted, &revision.Spec.Template) {
		follow(r, revision.Status.Resolved)
	}
	m.drifts[r.UID] = drift{
		version: r.ResourceVersion, revision: r.Revision, policy: string(policy), resolved: revision.Status.Resolved,
		known: true, drifted: r.Drifted, edited: r.Edited, follows: r.Follows, tagged: r.Tagged, corrected: known.correctedBy(a, r),
	}
	r.Stale = s.isStale(a, r, m.drifts[r.UID].corrected)
}

// correctedBy is the generation by which what was not what its revision says was put
// right, of an assemblage that comes after one of which this is known.
func (d *drift) correctedBy(a *assembled, r *Record) int64 {
	switch {
	case d.revision != r.Revision:
		return 0
	case d.drifted && !r.Drifted:
		return a.GetGeneration()
	default:
		return d.corrected
	}
}

// isStale is true of a success that is none of what the sync says now: it is of another
// commit than the one that the tag was found to be, or of a generation before the one
// that put the sync right. Who reports no generation is believed.
func (s *sight) isStale(a *assembled, r *Record, corrected int64) bool {
	if r.Edited || r.Follows || !r.succeeded() {
		return false
	}
	resolved := s.resolved(r.Revision)
	if resolved == "" { // what it turns out to be will be told to all: it has to be what is there
		corrected = a.GetGeneration()
	}
	if seen := a.status.ObservedGeneration; seen != 0 && seen < corrected {
		return true
	}
	return r.Resolved != "" && s.isPinned(r.Revision) && agent.Digest(r.Resolved) != agent.Digest(resolved)
}

// isPinned is true of a revision that says a commit where its template names a tag.
func (s *sight) isPinned(revision string) bool {
	r := s.revisions[revision]
	return r != nil && s.templates[revision] != &r.Spec.Template
}

// resolved is what the tag of a revision turned out to be.
func (s *sight) resolved(revision string) string {
	if r := s.revisions[revision]; r != nil {
		return r.Status.Resolved
	}
	return ""
}

// follow is of a sync that follows a tag which stands for something known. One that is
// on its way goes on; it is told later.
func follow(r *Record, resolved string) {
	r.Tagged = true
	succeeded := r.succeeded()
	r.Drifted = succeeded && agent.Digest(r.Resolved) != agent.Digest(resolved)
	r.Follows = !r.Drifted && (succeeded || r.Reported && r.State == v1alpha1.StateFailed)
}

// adopt recognises a sync that says no revision but is what one says: whoever wrote
// it before, nothing has to move.
func (o *observer) adopt(s *sight, a *assembled, r *Record) {
	if r.Revision != "" {
		return
	}
	assignment, sync, _ := a.sync(s.key.Name)
	for name, revision := range s.revisions {
		if o.kind.says(sync, *assignment, &revision.Spec.Template) {
			r.Revision = name
			return
		}
	}
}

// assignment is what a module says of a sync besides what its revision does.
func (k *kind) assignment(m *Module, revision string, at *metav1.MicroTime) v1alpha1.Assignment {
	return v1alpha1.Assignment{Name: m.Name, Revision: revision, AssignedAt: at, DeletionPolicy: m.deletionPolicy()}
}
