package config

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/workload"
)

// observer does all the reads of the ring.
type observer struct {
	options Options
	// workloads reads workloads, including the ring's own writes.
	workloads client.Reader
	// source reads their config.
	source content.Source
	// namespace limits the pass to one namespace, all if empty.
	namespace string
	cache     cache
}

func newObserver(o Options, workloads client.Reader, source content.Source) *observer {
	source.Namespaces, source.AllowCrossNamespace = o.Namespaces, o.AllowCrossNamespace
	return &observer{options: o, workloads: workloads, source: source, cache: cache{}}
}

// observe reads every relevant workload. It reads values only for those whose
// digests have changed since the last pass.
func (o *observer) observe(ctx context.Context) (Observed, error) {
	p := &pass{observer: o, now: o.options.Now(), lookup: o.source.Lookup()}
	objects, err := workload.List(ctx, o.workloads, o.namespaces())
	if err != nil {
		return Observed{}, err
	}
	seen := make([]*entry, len(objects))
	for i, obj := range objects {
		if seen[i], err = p.observeWorkload(ctx, obj); err != nil {
			return Observed{}, err
		}
	}
	p.hash(ctx, seen)
	o.cache.keep(seen)
	return p.snapshot(seen), nil
}

// namespaces are those to list in; the empty one stands for all.
func (o *observer) namespaces() []string {
	if o.namespace == "" && len(o.options.Namespaces) > 0 {
		return o.options.Namespaces
	}
	return []string{o.namespace}
}

// pass is one run of observe.
type pass struct {
	*observer

	now    time.Time
	lookup *content.Lookup
}

// observeWorkload brings the entry of a workload up to date as far as digests tell.
func (p *pass) observeWorkload(ctx context.Context, obj client.Object) (*entry, error) {
	e := p.cache.of(obj)
	e.read(obj)
	if err := p.observeOwned(ctx, &e.workload); err != nil {
		return nil, err
	}
	p.observeWaiting(ctx, e)
	if !e.workload.Settings.Tracked {
		return e, nil
	}
	changed, err := p.lookup.Observe(ctx, &e.config, e.version, e.workload.Demand)
	if err != nil {
		return nil, err
	}
	if changed {
		configChanges.Inc()
		e.changes.saw(p.now, obj.GetNamespace(), e.config.Facts())
	}
	return e, nil
}

// observeOwned finds the objects that would be deleted with the workload, because
// an old version of wave made it their owner.
func (p *pass) observeOwned(ctx context.Context, w *workload.Workload) error {
	if !w.Legacy.Finalizer {
		return nil
	}
	w.Legacy.Owns = nil
	var (
		configMaps corev1.ConfigMapList
		secrets    corev1.SecretList
	)
	for _, list := range []client.ObjectList{&configMaps, &secrets} {
		err := p.source.Digests.List(ctx, list, client.InNamespace(w.Namespace), client.UnsafeDisableDeepCopy)
		if err != nil {
			return fmt.Errorf("list owned config: %w", err)
		}
	}
	for i := range configMaps.Items {
		addOwned(w, &configMaps.Items[i])
	}
	for i := range secrets.Items {
		addOwned(w, &secrets.Items[i])
	}
	return nil
}

func addOwned(w *workload.Workload, obj client.Object) {
	for i, ref := range obj.GetOwnerReferences() {
		if ref.UID == w.UID {
			w.Legacy.Owns = append(w.Legacy.Owns, workload.Owned{Object: content.ObjectOf(obj), Index: i, UID: ref.UID})
		}
	}
}

// observeWaiting finds the Pods of a released workload that are still suspended.
func (p *pass) observeWaiting(ctx context.Context, e *entry) {
	s := &e.workload.Suspension
	if !s.Freeing || e.retry.next.pending(p.now) {
		return
	}
	waiting, err := workload.WaitingPods(ctx, p.source.Values, e.workload.Object)
	if err != nil {
		e.retry.fail(p.now, err, false)
	}
	s.Waiting, s.Known = waiting, err == nil
}

// hash computes the hashes of the workloads whose config has changed and settled.
func (p *pass) hash(ctx context.Context, seen []*entry) {
	due := slices.DeleteFunc(slices.Clone(seen), func(e *entry) bool { return !p.isDue(e) })
	known := make([]*content.Known, len(due))
	for i, e := range due {
		known[i] = &e.config
	}
	for i, err := range p.lookup.Hash(ctx, known) {
		if err == nil {
			due[i].retry.reset()
			continue
		}
		due[i].retry.fail(p.now, err, false)
	}
}

// isDue is true if a hash is needed now.
func (p *pass) isDue(e *entry) bool {
	known := &e.config
	return e.workload.Settings.Tracked && known.Hashes() == nil && known.IsComplete() &&
		!p.now.Before(e.changes.pending.settlesAt(p.window(&e.workload))) && !e.retry.next.pending(p.now)
}

// window is how long changes are collected for a workload. One that has no hash
// yet does not run with any config, and is not delayed.
func (p *pass) window(w *workload.Workload) time.Duration {
	if w.Template.Hash == "" {
		return 0
	}
	return p.options.window(w)
}

// snapshot is the value that the plan is made from.
func (p *pass) snapshot(seen []*entry) Observed {
	o := Observed{Now: p.now, Workloads: make([]Workload, 0, len(seen))}
	for _, e := range seen {
		w := e.snapshot()
		if !p.options.Zones {
			w.Zone = workload.Zone{} // no other ring replaces its Pods
		}
		if w.IsCurrent() {
			e.changes.settle(e.config.Facts())
			w.Change = Change{}
		}
		o.Workloads = append(o.Workloads, w)
	}
	return o
}

// learn records which writes failed, and returns when to observe again: zero if
// nothing changes automatically.
func (o *observer) learn(results []result, plan Plan) time.Duration {
	now, wake := o.options.Now(), plan.Wake
	for _, r := range results {
		e, ok := o.cache[r.write.Workload.UID]
		switch {
		case !ok:
		case r.err == nil:
			e.retry.reset()
			if len(r.write.Frees) > 0 { // no watch shows their deletion
				wake = now
			}
		default:
			e.retry.fail(now, r.err, true)
		}
	}
	for _, e := range o.cache {
		if e.retry.next.pending(now) {
			wake = earlier(wake, e.retry.next.At)
		}
	}
	if wake.IsZero() {
		return 0
	}
	return max(wake.Sub(now), time.Millisecond)
}
