package config

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// readers is how many values are read at a time.
const readers = 8

// hash computes the hashes of the workloads whose config has changed and settled
// down. Each object is read once, however many workloads use it, and its values
// are dropped with the last hash that needs them.
func (p *pass) hash(ctx context.Context, seen []*recollection) {
	defer p.hashed.turn()
	due := slices.DeleteFunc(slices.Clone(seen), func(r *recollection) bool { return !p.due(r) || p.recalls(r) })
	values := newValues(p.values, due)
	var group errgroup.Group
	group.SetLimit(readers)
	for _, r := range due {
		group.Go(func() error {
			if err := r.compute(ctx, values); err != nil {
				r.failed(p.now, err, false)
				return nil
			}
			if p.hashed != nil {
				p.hashed.keep(r.key(), r.hashes)
			}
			return nil
		})
	}
	_ = group.Wait() // an error is its workload's
}

// recalls takes over the hashes of a workload, if they are known.
func (p *pass) recalls(r *recollection) bool {
	if p.hashed == nil {
		return false
	}
	known := p.hashed.of(r.key())
	if known == nil {
		return false
	}
	r.hashes, r.hashedFor, r.hashedAs = known, r.fingerprint, r.fingerprint
	return true
}

// due is true if a hash is needed now.
func (p *pass) due(r *recollection) bool {
	return r.settings.Tracked && !r.hashKnown() && len(r.denied) == 0 && len(r.missing()) == 0 &&
		!p.now.Before(r.change.settlesAt(p.window(r))) && !r.retry.pending(p.now)
}

// window is how long changes are collected for a workload. One that has no hash
// yet is not running with any config, and is never kept waiting.
func (p *pass) window(r *recollection) time.Duration {
	switch {
	case r.template.Hash == "":
		return 0
	case r.settings.CoalesceWindow != nil:
		return *r.settings.CoalesceWindow
	default:
		return p.options.CoalesceWindow
	}
}

// settlesAt is when a change may be acted upon: when it has been the last one
// for a window, at the latest coalesceLimit windows after the first.
func (c *Change) settlesAt(window time.Duration) time.Time {
	quiet, limit := c.Last.Add(window), c.First.Add(coalesceLimit*window)
	if limit.Before(quiet) {
		return limit
	}
	return quiet
}

// compute reads what the workload uses and hashes it.
func (r *recollection) compute(ctx context.Context, values *values) error {
	defer values.release(r)
	c := contents{}
	r.facts, r.forbidden = maps.Clone(r.facts), nil
	for o := range r.facts {
		v := values.get(ctx, o)
		if apierrors.IsForbidden(v.err) {
			r.forbidden = []string{forbidden(o, r.object.GetNamespace())}
		}
		if v.err != nil {
			return v.err
		}
		if r.facts[o] = v.facts; v.facts.exists {
			c[o] = v.content
		}
	}
	r.retry, r.attempts = nil, 0
	r.hashedFor, r.hashedAs = r.fingerprint, fingerprint(r.scope(), r.facts)
	var err error
	r.hashes, err = values.hashes(r.wanted(), c)
	return err
}

// wanted are the scopes whose hashes a template might carry.
type wanted struct{ own, predecessors, unignored scope }

func (r *recollection) wanted() wanted {
	own := r.scope()
	return wanted{
		own:          own,
		predecessors: scope{namespace: own.namespace, refs: r.predecessorRefs, merged: true},
		unignored:    scope{namespace: own.namespace, refs: own.refs},
	}
}

// hashes hashes the contents in every scope, once for all workloads that use
// the same config in the same way.
func (v *values) hashes(w wanted, c contents) (*Hashes, error) {
	entry, _ := v.shared.LoadOrStore(fmt.Sprint(w), &sharedHashes{})
	shared := entry.(*sharedHashes) //nolint:forcetypeassert // nothing else is stored
	shared.once.Do(func() { shared.hashes, shared.err = w.hash(c) })
	return shared.hashes, shared.err
}

type sharedHashes struct {
	once   sync.Once
	hashes *Hashes
	err    error
}

func (w wanted) hash(c contents) (*Hashes, error) {
	h := &Hashes{}
	var err error
	if h.Desired, err = w.own.hash(c, hollowAsFound); err != nil {
		return nil, err
	}
	if w.own.hollow(c) {
		err = errors.Join(h.equivalent(w.own.hash(c, hollowLeftOut)), h.equivalent(w.own.hash(c, hollowKept)))
	}
	var failed [2]error
	if !w.own.like(w.predecessors) {
		h.Predecessor, failed[0] = w.predecessors.hash(c, hollowAsFound)
	}
	if !w.own.like(w.unignored) {
		h.Unignored, failed[1] = w.unignored.hash(c, hollowAsFound)
	}
	return h, errors.Join(err, failed[0], failed[1])
}

func (h *Hashes) equivalent(hash string, err error) error {
	if hash != h.Desired {
		h.Equivalent = append(h.Equivalent, hash)
	}
	return err
}

// hashKnown is true if the hashes are of the present contents.
func (r *recollection) hashKnown() bool {
	return r.hashes != nil && (r.hashedFor == r.fingerprint || r.hashedAs == r.fingerprint)
}

// values are the contents of objects, read once and kept until the last
// workload that needs them has its hash.
type values struct {
	reader  client.Reader
	objects map[Object]*value
	// shared has a *sharedHashes for each way of using config.
	shared sync.Map
}

type value struct {
	once    sync.Once
	users   atomic.Int64
	facts   facts
	content map[string][]byte
	err     error
}

func newValues(reader client.Reader, due []*recollection) *values {
	v := &values{reader: reader, objects: map[Object]*value{}}
	for _, r := range due {
		for o := range r.facts {
			if v.objects[o] == nil {
				v.objects[o] = &value{}
			}
			v.objects[o].users.Add(1)
		}
	}
	return v
}

func (v *values) get(ctx context.Context, o Object) *value {
	val := v.objects[o]
	val.once.Do(func() { val.read(ctx, v.reader, o) })
	return val
}

// release drops the contents that no other workload needs.
func (v *values) release(r *recollection) {
	for o := range r.facts {
		if val := v.objects[o]; val.users.Add(-1) == 0 {
			val.content = nil
		}
	}
}

func (val *value) read(ctx context.Context, reader client.Reader, o Object) {
	if o.Kind == SecretProviderClass {
		val.readProvided(ctx, reader, o)
		return
	}
	obj := emptyObject(o.Kind)
	err := reader.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, obj)
	if apierrors.IsNotFound(err) {
		return
	}
	if err != nil {
		val.err = fmt.Errorf("read %s: %w", o.From(""), err)
		return
	}
	val.content = valuesOf(obj)
	val.facts = digestedFacts(obj)
}

func (val *value) readProvided(ctx context.Context, reader client.Reader, o Object) {
	versions, err := provided(ctx, reader, o)
	val.facts, val.err = providedFacts(versions), err
	val.content = make(map[string][]byte, len(versions))
	for id, version := range versions {
		val.content[id] = []byte(version)
	}
}

// valuesOf are the values of an object as it is.
func valuesOf(obj client.Object) map[string][]byte {
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		return configMapValues(o)
	case *corev1.Secret:
		return o.Data
	default:
		return nil
	}
}
