package content

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Readers is how many objects are read at a time.
const Readers = 8

// Hash computes the hashes of workloads whose hashes are not known, and returns
// the error of each. Each object is read once, however many workloads use it, and
// its values are dropped with the last hash that needs them.
func (l *Lookup) Hash(ctx context.Context, due []*Known) []error {
	defer l.Hashes.turn()
	var unknown []*Known
	for _, k := range due {
		if !l.Hashes.recall(k) {
			unknown = append(unknown, k)
		}
	}
	values, errs := newValues(l.Values, unknown), make([]error, len(due))
	var group errgroup.Group
	group.SetLimit(Readers)
	for i, k := range due {
		if k.Hashes() != nil {
			continue
		}
		group.Go(func() error {
			if errs[i] = k.compute(ctx, values); errs[i] == nil {
				l.Hashes.keep(k)
			}
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	return errs
}

// Batch returns how many of some workloads to hash together, so that the values of about so
// many objects are read. It is at least one. Workloads that use the same objects stay together.
func Batch(due []*Known, objects int) []*Known {
	read := map[Object]bool{}
	batch := slices.DeleteFunc(slices.Clone(due), func(k *Known) bool {
		more := 0
		for o := range k.facts {
			if !read[o] {
				more++
			}
		}
		if more > 0 && len(read) > 0 && len(read)+more > objects {
			return true
		}
		for o := range k.facts {
			read[o] = true
		}
		return false
	})
	return batch
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
	fact    fact
	content map[string][]byte
	err     error
}

func newValues(reader client.Reader, due []*Known) *values {
	v := &values{reader: reader, objects: map[Object]*value{}}
	for _, k := range due {
		for o := range k.facts {
			if v.objects[o] == nil {
				v.objects[o] = &value{}
			}
			v.objects[o].users.Add(1)
		}
	}
	return v
}

// compute reads the values that the workload uses and hashes them.
func (k *Known) compute(ctx context.Context, values *values) error {
	defer values.release(k)
	c := contents{}
	k.facts, k.forbidden, k.inputs = maps.Clone(k.facts), nil, ""
	for o, f := range k.facts {
		if !f.exists && !k.demand.First {
			continue // the cache knows that there is none
		}
		v := values.get(ctx, o)
		if apierrors.IsForbidden(v.err) {
			k.forbidden = []string{forbidden(o, k.demand.Namespace)}
		}
		if v.err != nil {
			return v.err
		}
		if k.facts[o] = v.fact; v.fact.exists {
			c[o] = v.content
		}
	}
	k.hashedFor, k.hashedAs = k.fingerprint, fingerprint(k.scope(), k.facts)
	var err error
	k.hashes, err = values.hashes(k.scopes(), c)
	return err
}

func (v *values) get(ctx context.Context, o Object) *value {
	val := v.objects[o]
	val.once.Do(func() { val.read(ctx, v.reader, o) })
	return val
}

// release drops the contents that no other workload needs.
func (v *values) release(k *Known) {
	for o := range k.facts {
		if val := v.objects[o]; val.users.Add(-1) == 0 {
			val.content = nil
		}
	}
}

// hashes hashes the contents in every scope, once for all workloads that use
// the same config in the same way.
func (v *values) hashes(s scopes, c contents) (*Hashes, error) {
	entry, _ := v.shared.LoadOrStore(fmt.Sprint(s), &sharedHashes{})
	shared := entry.(*sharedHashes) //nolint:forcetypeassert // nothing else is stored
	shared.once.Do(func() { shared.hashes, shared.err = s.hash(c) })
	return shared.hashes, shared.err
}

type sharedHashes struct {
	once   sync.Once
	hashes *Hashes
	err    error
}

func (val *value) read(ctx context.Context, reader client.Reader, o Object) {
	if o.Kind == SecretProviderClass {
		val.readProvided(ctx, reader, o)
		return
	}
	if !isName(o.Name) {
		return
	}
	obj := o.Kind.New()
	err := reader.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, obj)
	if apierrors.IsNotFound(err) {
		return
	}
	if err != nil {
		val.err = fmt.Errorf("get %s: %w", o.From(""), err)
		return
	}
	val.content = valuesOf(obj)
	Digest(obj)
	val.fact = factOf(obj)
}

func (val *value) readProvided(ctx context.Context, reader client.Reader, o Object) {
	versions, err := provided(ctx, reader, o)
	val.fact, val.err = providedFact(versions), err
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
