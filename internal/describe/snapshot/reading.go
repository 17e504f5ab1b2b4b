package snapshot

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
)

// Reading is a [Watched] as it is read once, and knows whether the same would be read again.
type Reading struct {
	*Watched

	mu sync.Mutex
	// seen are the kinds that were read, with their changes when that began.
	seen map[*watchedKind]int64
	// asked is true if something was read that is not watched.
	asked bool
}

// Reading begins one.
func (m *Watched) Reading() *Reading { return &Reading{Watched: m, seen: map[*watchedKind]int64{}} }

// Holds is true while nothing has changed of all that was read. It is false if the API server itself
// was asked: no watch keeps up with that.
func (r *Reading) Holds() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for kind, changes := range r.seen {
		if kind.changes.Load() != changes {
			return false
		}
	}
	return !r.asked
}

// Asked is true if the API server itself was asked.
func (r *Reading) Asked() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// note remembers a kind before it is read, or that the API server is asked if it is nil.
func (r *Reading) note(kind *watchedKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if kind == nil {
		r.asked = true
	} else if _, known := r.seen[kind]; !known {
		r.seen[kind] = kind.changes.Load()
	}
}

// Get implements [client.Reader].
func (r *Reading) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	kind := r.keptOf(ctx, key, obj)
	r.note(kind)
	return r.get(ctx, kind, key, obj, opts...)
}

// List implements [client.Reader].
func (r *Reading) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	_, kind, _ := r.keptList(ctx, list, (&client.ListOptions{}).ApplyOptions(opts)) // an error is that of the list
	r.note(kind)
	return r.Watched.List(ctx, list, opts...)
}

// kept implements [keeper]: what was listed is the same until an object of the kind changes.
func (r *Reading) kept(ctx context.Context, of kindIn, list client.ObjectList) *kindSeen {
	m, kind, err := r.keptList(ctx, list, &client.ListOptions{Namespace: of.namespace})
	if err != nil || kind == nil {
		return &kindSeen{}
	}
	r.note(kind)
	return m.listed(of, kind)
}

// listed is what was listed of a kind since it has changed last; nothing yet if that is not so.
func (m *Watched) listed(of kindIn, kind *watchedKind) *kindSeen {
	m.mu.Lock()
	defer m.mu.Unlock()
	changes, known := kind.changes.Load(), m.lists[of]
	if known.seen == nil || known.changes != changes || known.seen.failed.Load() {
		known = listedAt{changes, &kindSeen{}}
		m.lists[of] = known
	}
	return known.seen
}

// listedAt is what was listed after some changes.
type listedAt struct {
	changes int64
	seen    *kindSeen
}

// Values implements [content.Reduced].
func (r *Reading) Values() client.Reader { return asking{r, r.Watched.Values()} }

// asking notes that the API server is asked.
type asking struct {
	of *Reading
	client.Reader
}

// Get implements [client.Reader].
func (a asking) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	a.of.note(nil)
	return a.Reader.Get(ctx, key, obj, opts...) //nolint:wrapcheck // stands in for the reader
}

// List implements [client.Reader].
func (a asking) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	a.of.note(nil)
	return a.Reader.List(ctx, list, opts...) //nolint:wrapcheck // stands in for the reader
}

// keptOf is the kind in which an object is found, nil if the API server is asked for it: perhaps
// only lists are forbidden.
func (m *Watched) keptOf(ctx context.Context, key client.ObjectKey, obj client.Object) *watchedKind {
	if isUntyped(obj) || !m.holds(key.Namespace) || isHelms(key, obj) {
		return nil
	}
	kind, err := m.keep(ctx, obj, nil)
	if err != nil {
		return nil
	}
	return kind
}

// get reads an object of a kind that is watched, from the API server if it is nil.
func (m *Watched) get(ctx context.Context, kind *watchedKind, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if kind == nil {
		return m.Client.Get(ctx, key, obj, opts...) //nolint:wrapcheck // stands in for the client
	}
	return m.cache.Get(ctx, key, obj, opts...) //nolint:wrapcheck // stands in for the client
}

// keptList is the kind whose objects a list has, and who watches it: nil if the API server is
// asked for it. Where one namespace is watched, lists of all are watched beside it.
func (m *Watched) keptList(ctx context.Context, list client.ObjectList, wanted *client.ListOptions) (*Watched, *watchedKind, error) {
	if wanted.Namespace == "" && m.namespace != "" {
		wide, err := m.wide()
		if err != nil {
			return nil, nil, err
		}
		return wide.keptList(ctx, list, wanted)
	}
	_, secrets := list.(*corev1.SecretList)
	obj := m.itemOf(list)
	if obj == nil || !m.holds(wanted.Namespace) || wanted.FieldSelector != nil && !wanted.FieldSelector.Empty() && !secrets {
		return nil, nil, nil
	}
	kind, err := m.keep(ctx, obj, list)
	return m, kind, err
}

var _ content.Reduced = (*Reading)(nil)
