package content

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Readers is how many objects are read at a time.
const Readers = 8

// Hash computes the hashes of workloads whose hashes are not known, and returns
// the error of each. Each object is read once, however many workloads use it, and
// its values are dropped with the last hash that needs them, or earlier if they are many.
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
	for i, k := range due {
		if errs[i] == nil {
			l.note(k.facts)
		}
	}
	return errs
}

// note notes what was read for a hash and is not what the cache has.
func (l *Lookup) note(read Facts) {
	for o, f := range read {
		if known, ok := l.facts[o]; ok && known.version != f.version {
			l.newer[o] = f.version
		}
	}
}

// Batch chooses workloads to hash together, in their order: those of which about so many
// objects are read, and one that alone needs more than that, so that neither a large one
// nor many small ones keep the others waiting for long. Workloads that use the same objects
// stay together.
func Batch(due []*Known, objects int) []*Known {
	read, n, large := map[Object]bool{}, 0, false
	return slices.DeleteFunc(slices.Clone(due), func(k *Known) bool {
		more := k.unread(read, objects)
		switch {
		case more > objects:
			if large {
				return true
			}
			large = true
		case more > 0 && n > 0 && n+more > objects:
			return true
		default:
			n += more
		}
		for o := range k.facts {
			read[o] = true
		}
		return false
	})
}

// unread is how many objects must be read for the hash besides some others; what is above
// the limit is not counted.
func (k *Known) unread(read map[Object]bool, limit int) int {
	n, awaits := 0, k.awaits()
	for o, f := range k.facts {
		if !read[o] && (f.exists || awaits) {
			if n++; n > limit {
				break
			}
		}
	}
	return n
}

// mostAwaited bounds how many objects that the cache does not have are read for one hash.
// Workloads that are created with their config have a few of them.
const mostAwaited = 64

// awaits is true of a workload whose config may have been created a moment before it
// ([Demand.First]), so that what the cache does not have is read all the same.
func (k *Known) awaits() bool {
	if !k.demand.First {
		return false
	}
	n := 0
	for _, f := range k.facts {
		if !f.exists {
			n++
		}
	}
	return n <= mostAwaited
}

// values are the contents of objects, each read once and kept until the last workload that needs it
// has its hash, unless together they are more than [MostBytes].
type values struct {
	reader client.Reader
	// readers has a place for each object that may be read at a time.
	readers chan struct{}
	// room has a place for each MiB of the workloads that are hashed at a time: an object has at most
	// about one.
	room    *semaphore.Weighted
	objects map[Object]*slot
	// held is how many bytes are kept.
	held atomic.Int64
	// shared has a *sharedHashes for each way of using each content.
	shared sync.Map
}

// slot is the place of an object that some workloads are yet to use.
type slot struct {
	mu    sync.Mutex
	users int
	// value is nil if it is not kept.
	value *value
}

// value is what was read of an object.
type value struct {
	fact    fact
	content map[string][]byte
	err     error
}

func newValues(reader client.Reader, due []*Known) *values {
	v := &values{reader: reader, readers: make(chan struct{}, Readers), room: semaphore.NewWeighted(MostBytes >> 20), objects: map[Object]*slot{}}
	for _, k := range due {
		for o := range k.facts {
			if v.objects[o] == nil {
				v.objects[o] = &slot{}
			}
			v.objects[o].users++
		}
	}
	return v
}

// compute reads the values that the workload uses and hashes them.
func (k *Known) compute(ctx context.Context, values *values) error {
	needed := k.needed()
	places := min(int64(len(needed)), MostBytes>>20)
	if err := values.room.Acquire(ctx, places); err != nil {
		return fmt.Errorf("read config: %w", err)
	}
	defer values.room.Release(places)
	defer values.release(k)
	k.facts, k.forbidden, k.derived = maps.Clone(k.facts), nil, derived{}
	read, ok := values.read(ctx, needed)
	if !ok {
		k.forbidden = []string{tooLarge}
		return errors.New(tooLarge)
	}
	c := contents{}
	for o, v := range read {
		if apierrors.IsForbidden(v.err) {
			k.forbidden = []string{forbidden(o, k.demand.Namespace)}
		}
		if v.err != nil {
			return v.err
		}
		if k.facts[o].exists && !v.fact.exists { // a hash without it would be taken for that of a content
			return fmt.Errorf("%s was deleted a moment ago", o.From(k.demand.Namespace))
		}
		if k.facts[o] = v.fact; v.fact.exists {
			c[o] = v.content
		}
	}
	k.hashedFor, k.hashedAs = k.fingerprint, fingerprint(k.scope(), k.facts)
	var err error
	k.hashes, err = values.hashes(k, c)
	return err
}

// needed are the objects whose values the hash is of, but for what the cache knows to be
// missing.
func (k *Known) needed() []Object {
	awaits := k.awaits()
	var needed []Object
	for o, f := range k.facts {
		if f.exists || awaits {
			needed = append(needed, o)
		}
	}
	return needed
}

// MostBytes bounds how large the config of one workload may be: its hash is of all of it.
const MostBytes = 32 << 20

var tooLarge = fmt.Sprintf("its ConfigMaps and Secrets cannot be read: they have more than %d MiB; use fewer or smaller ones", MostBytes>>20)

// read reads objects that are not kept, several at a time. It is false of more than [MostBytes].
func (v *values) read(ctx context.Context, objects []Object) (map[Object]*value, bool) {
	var (
		group errgroup.Group
		size  atomic.Int64
		found = make([]*value, len(objects))
	)
	group.SetLimit(Readers)
	for i, o := range objects {
		if size.Load() > MostBytes {
			break
		}
		group.Go(func() error {
			found[i] = v.get(ctx, o)
			size.Add(found[i].size())
			return nil
		})
	}
	_ = group.Wait() // nothing is returned
	if size.Load() > MostBytes {
		return nil, false
	}
	read := make(map[Object]*value, len(objects))
	for i, o := range objects {
		read[o] = found[i]
	}
	return read, true
}

// get returns the value of an object, and keeps it.
func (v *values) get(ctx context.Context, o Object) *value {
	s := v.objects[o]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.value == nil {
		v.readers <- struct{}{}
		defer func() { <-v.readers }()
		s.value = readValue(ctx, v.reader, o)
		v.held.Add(s.value.size())
	}
	return s.value
}

// size is how many bytes the value has.
func (val *value) size() int64 {
	n := 0
	for _, content := range val.content {
		n += len(content)
	}
	return int64(n)
}

// release drops the values of a workload that no other one needs, and all of them if too much is kept:
// they are read again.
func (v *values) release(k *Known) {
	for o := range k.facts {
		s := v.objects[o]
		s.mu.Lock()
		if s.users--; s.value != nil && (s.users == 0 || v.held.Load() > MostBytes) {
			v.held.Add(-s.value.size())
			s.value = nil
		}
		s.mu.Unlock()
	}
}

// hashes hashes the contents in every scope, once for all workloads that use
// the same config in the same way.
func (v *values) hashes(k *Known, c contents) (*Hashes, error) {
	entry, _ := v.shared.LoadOrStore(k.key(), &sharedHashes{})
	shared := entry.(*sharedHashes) //nolint:forcetypeassert // nothing else is stored
	shared.once.Do(func() { shared.hashes, shared.err = k.scopes().hash(c) })
	return shared.hashes, shared.err
}

type sharedHashes struct {
	once   sync.Once
	hashes *Hashes
	err    error
}

func readValue(ctx context.Context, reader client.Reader, o Object) *value {
	if o.Kind == SecretProviderClass {
		return readProvided(ctx, reader, o)
	}
	if !isName(o.Name) {
		return &value{}
	}
	obj := o.Kind.New()
	err := reader.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, obj)
	if apierrors.IsNotFound(err) {
		return &value{}
	}
	if err != nil {
		return &value{err: fmt.Errorf("get %s: %w", o.From(""), err)}
	}
	content := ValuesOf(obj)
	Digest(obj)
	return &value{content: content, fact: factOf(obj)}
}

func readProvided(ctx context.Context, reader client.Reader, o Object) *value {
	versions, err := provided(ctx, reader, o)
	val := &value{fact: providedFact(versions), err: err, content: make(map[string][]byte, len(versions))}
	for id, version := range versions {
		val.content[id] = []byte(version)
	}
	return val
}

// ValuesOf are the values of a ConfigMap or a Secret as it is, by their keys.
func ValuesOf(obj client.Object) map[string][]byte {
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		return configMapValues(o)
	case *corev1.Secret:
		return o.Data
	default:
		return nil
	}
}
