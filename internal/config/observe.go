package config

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/health"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// observer does all the reads of the ring.
type observer struct {
	options Options
	// workloads reads workloads, and sees what the ring itself has written.
	workloads client.Reader
	// digests reads ConfigMaps and Secrets reduced by [Digest].
	digests client.Reader
	// values reads ConfigMaps and Secrets as they are, from the API server.
	values client.Reader
	// hashed are hashes that are known from former looks, nil if there were none.
	hashed *Hashed
	// provided is true where the secrets store CSI driver is installed.
	provided bool
	// namespace narrows the look to one namespace, all if empty.
	namespace string
	memory    memory
}

// observe looks at every workload in sight. It reads values only for those
// whose digests have changed since it last did.
func (o *observer) observe(ctx context.Context) (Observed, error) {
	pass := &pass{observer: o, now: o.options.Now(), facts: map[Object]facts{}}
	objects, err := o.list(ctx)
	if err != nil {
		return Observed{}, err
	}
	seen := make([]*recollection, len(objects))
	for i, obj := range objects {
		if seen[i], err = pass.look(ctx, obj); err != nil {
			return Observed{}, err
		}
	}
	pass.hash(ctx, seen)
	o.memory.keep(seen)
	return pass.observed(seen), nil
}

// list returns the workloads in sight, sorted by name.
func (o *observer) list(ctx context.Context) ([]client.Object, error) {
	var objects []client.Object
	for _, namespace := range o.namespaces() {
		found, err := o.listIn(ctx, namespace)
		if err != nil {
			return nil, err
		}
		objects = append(objects, found...)
	}
	slices.SortFunc(objects, byName)
	return objects, nil
}

// byName orders workloads by namespace, kind and name.
func byName(a, b client.Object) int {
	return cmp.Or(
		strings.Compare(a.GetNamespace(), b.GetNamespace()),
		strings.Compare(kindOf(a), kindOf(b)),
		strings.Compare(a.GetName(), b.GetName()),
	)
}

// namespaces are those to list in; the empty one stands for all.
func (o *observer) namespaces() []string {
	if o.namespace == "" && len(o.options.Namespaces) > 0 {
		return o.options.Namespaces
	}
	return []string{o.namespace}
}

func (o *observer) listIn(ctx context.Context, namespace string) ([]client.Object, error) {
	var (
		deployments  appsv1.DeploymentList
		statefulSets appsv1.StatefulSetList
		daemonSets   appsv1.DaemonSetList
	)
	for _, list := range []client.ObjectList{&deployments, &statefulSets, &daemonSets} {
		if err := o.workloads.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list workloads: %w", err)
		}
	}
	objects := appendInSight[appsv1.Deployment](nil, deployments.Items)
	objects = appendInSight[appsv1.StatefulSet](objects, statefulSets.Items)
	return appendInSight[appsv1.DaemonSet](objects, daemonSets.Items), nil
}

func appendInSight[T any, P interface {
	*T
	client.Object
}](objects []client.Object, items []T) []client.Object {
	for i := range items {
		if obj := P(&items[i]); inSight(obj) {
			objects = append(objects, obj)
		}
	}
	return objects
}

func nameOf(obj client.Object) Name {
	return Name{Kind: kindOf(obj), Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// pass is one run of observe.
type pass struct {
	*observer
	now   time.Time
	facts map[Object]facts
}

// look brings the recollection of a workload up to date as far as digests tell.
func (p *pass) look(ctx context.Context, obj client.Object) (*recollection, error) {
	r := p.memory.of(obj)
	if r.version != obj.GetResourceVersion() {
		r.learn(obj)
		r.health = health.Of(obj, gvkOf(obj))
	}
	if err := p.lookForOwned(ctx, r); err != nil {
		return nil, err
	}
	p.lookForWaiting(ctx, r)
	if !r.settings.Tracked || p.unchanged(ctx, r) {
		return r, nil
	}
	if err := p.lookUp(ctx, r); err != nil {
		return nil, err
	}
	p.judge(r)
	return r, nil
}

// learn reads what the workload itself says.
func (r *recollection) learn(obj client.Object) {
	template := TemplateOf(obj)
	namespace := obj.GetNamespace()
	if r.generation != obj.GetGeneration() {
		r.retry, r.attempts = nil, 0
	}
	r.object, r.version, r.generation = shallow(obj), obj.GetResourceVersion(), obj.GetGeneration()
	r.settings = settings(namespace, obj.GetAnnotations())
	r.refs = references(namespace, &template.Spec, r.settings.Extra, r.settings.PullSecrets)
	r.predecessorRefs = predecessorReferences(namespace, &template.Spec, r.settings.Extra)
	r.template = observedTemplate(template, r.settings.Dialect)
	r.records = recordsOf(obj)
	r.legacy, r.suspension, r.zone = legacyOf(obj), suspensionOf(obj), zoneOf(obj)
	if obj.GetDeletionTimestamp() != nil { // only what keeps it from going still matters
		r.settings.Tracked, r.suspension = false, Suspension{}
	}
}

func observedTemplate(t *corev1.PodTemplateSpec, dialect string) Template {
	hash, name, ok := vocabulary.ConfigHash.Lookup(t.Annotations)
	if !ok {
		name = vocabulary.ConfigHash.In(dialect)
	}
	return Template{Hash: hash, HashName: name, Annotated: len(t.Annotations) > 0, Scheduler: t.Spec.SchedulerName, Gates: len(t.Spec.SchedulingGates)}
}

// lookUp finds out what is known of the objects that a workload uses.
func (p *pass) lookUp(ctx context.Context, r *recollection) error {
	r.denied, r.factsOf = nil, r.version
	r.facts = map[Object]facts{}
	for _, ref := range slices.Concat(r.refs, r.predecessorRefs) {
		if _, done := r.facts[ref.Object]; done {
			continue
		}
		f, denied, err := p.find(ctx, r.object.GetNamespace(), ref.Object)
		if err != nil {
			return err
		}
		r.facts[ref.Object] = f
		if denied != "" {
			r.denied = append(r.denied, denied)
		}
	}
	return nil
}

// unchanged is true if neither the workload nor anything that it uses has
// changed since the last pass, so that all that is remembered still holds.
func (p *pass) unchanged(ctx context.Context, r *recollection) bool {
	if r.facts == nil || r.factsOf != r.version || len(r.denied) > 0 {
		return false
	}
	for o, known := range r.facts {
		if f, err := p.factsOf(ctx, o); err != nil || f.version != known.version {
			return false
		}
	}
	return true
}

// find returns the facts of an object, and a sentence if it may not be looked at.
func (p *pass) find(ctx context.Context, namespace string, o Object) (facts, string, error) {
	if len(p.options.Namespaces) > 0 && !slices.Contains(p.options.Namespaces, o.Namespace) {
		return facts{}, fmt.Sprintf("%s lies in a namespace that the manager does not watch; add it to --namespaces", o.From(namespace)), nil
	}
	f, err := p.factsOf(ctx, o)
	if apierrors.IsForbidden(err) {
		return facts{}, forbidden(o, namespace), nil
	}
	if err != nil {
		return facts{}, "", err
	}
	if o.Namespace != namespace && !p.options.AllowCrossNamespace && !f.sharedTo(namespace) {
		return facts{}, fmt.Sprintf("%s is not shared with namespace %s; annotate it with %s: %s",
			o.From(namespace), namespace, vocabulary.SharedWith.Native, namespace), nil
	}
	return f, "", nil
}

func forbidden(o Object, namespace string) string {
	return fmt.Sprintf("%s may not be read; grant get, list and watch on %ss in namespace %s",
		o.From(namespace), strings.ToLower(string(o.Kind)), o.Namespace)
}

func (p *pass) factsOf(ctx context.Context, o Object) (facts, error) {
	if f, ok := p.facts[o]; ok {
		return f, nil
	}
	if o.Kind == SecretProviderClass {
		return p.factsOfProvided(ctx, o)
	}
	obj := emptyObject(o.Kind)
	err := p.digests.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, obj)
	f := facts{}
	switch {
	case err == nil:
		f = factsOf(obj)
	case !apierrors.IsNotFound(err):
		return facts{}, fmt.Errorf("look up %s: %w", o.From(""), err)
	}
	p.facts[o] = f
	return f, nil
}

func (p *pass) factsOfProvided(ctx context.Context, o Object) (facts, error) {
	if !p.provided {
		return facts{}, nil
	}
	versions, err := provided(ctx, p.digests, o)
	if err != nil {
		return facts{}, err
	}
	p.facts[o] = providedFacts(versions)
	return p.facts[o], nil
}

func emptyObject(kind Kind) client.Object {
	if kind == Secret {
		return &corev1.Secret{}
	}
	return &corev1.ConfigMap{}
}

// lookForOwned finds the objects that would be deleted with the workload,
// because an old version of the predecessor made it their owner.
func (p *pass) lookForOwned(ctx context.Context, r *recollection) error {
	if !r.legacy.Finalizer {
		return nil
	}
	r.legacy.Owns = nil
	var (
		configMaps corev1.ConfigMapList
		secrets    corev1.SecretList
	)
	for _, list := range []client.ObjectList{&configMaps, &secrets} {
		err := p.digests.List(ctx, list, client.InNamespace(r.object.GetNamespace()), client.UnsafeDisableDeepCopy)
		if err != nil {
			return fmt.Errorf("look for owned config: %w", err)
		}
	}
	for i := range configMaps.Items {
		r.owns(ConfigMap, &configMaps.Items[i])
	}
	for i := range secrets.Items {
		r.owns(Secret, &secrets.Items[i])
	}
	return nil
}

// lookForWaiting finds the Pods of a released workload that wait on.
func (p *pass) lookForWaiting(ctx context.Context, r *recollection) {
	if !r.suspension.Freeing || r.retry.pending(p.now) {
		return
	}
	waiting, err := waitingPods(ctx, p.values, r.object)
	if err != nil {
		r.failed(p.now, err, false)
	}
	r.suspension.Waiting, r.suspension.Known = waiting, err == nil
}

func (r *recollection) owns(kind Kind, obj client.Object) {
	for i, ref := range obj.GetOwnerReferences() {
		if ref.UID == r.object.GetUID() {
			r.legacy.Owns = append(r.legacy.Owns, Owned{
				Object: Object{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()},
				Index:  i, UID: ref.UID,
			})
		}
	}
}

// observed is the value that the plan is made from.
func (p *pass) observed(seen []*recollection) Observed {
	o := Observed{Now: p.now, Workloads: make([]Workload, 0, len(seen))}
	for _, r := range seen {
		w := r.workload()
		if !p.options.Zones {
			w.Zone = Zone{} // nobody else moves its Pods
		}
		if w.current() {
			r.settle()
			w.Change = Change{}
		}
		o.Workloads = append(o.Workloads, w)
	}
	return o
}
