package config

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reduced is a reader of ConfigMaps and Secrets that were reduced by [Digest], for whoever
// looks again and again without keeping what is in them.
type Reduced interface {
	client.Reader

	// Values reads them as they are.
	Values() client.Reader
	// Hashed are the hashes that were computed already, nil if nobody keeps them.
	Hashed() *Hashed
}

// Hashed are the hashes of config from one look to the next, so that values are read only
// where they have changed. It is safe for concurrent use.
type Hashed struct {
	mu sync.Mutex
	// known are those of the last look, used those of this one.
	known, used map[[sha256.Size]byte]*Hashes
}

// of are the hashes of some config, nil if they are not known.
func (h *Hashed) of(key [sha256.Size]byte) *Hashes {
	h.mu.Lock()
	defer h.mu.Unlock()
	if found := h.known[key]; found != nil {
		h.add(key, found)
	}
	return h.used[key]
}

// keep remembers hashes until they are not asked for any more.
func (h *Hashed) keep(key [sha256.Size]byte, hashes *Hashes) {
	if hashes == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.add(key, hashes)
}

func (h *Hashed) add(key [sha256.Size]byte, hashes *Hashes) {
	if h.used == nil {
		h.used = map[[sha256.Size]byte]*Hashes{}
	}
	h.used[key] = hashes
}

// turn ends a look: what nobody has asked for in it is forgotten.
func (h *Hashed) turn() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known, h.used = h.used, nil
}

// key stands for all that the hashes of a workload follow from: the scopes, and what is
// in each object.
func (r *recollection) key() [sha256.Size]byte {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%v", r.wanted())
	for _, o := range slices.SortedFunc(maps.Keys(r.facts), Object.compare) {
		f := r.facts[o]
		_, _ = fmt.Fprintf(sum, "%v %v %q", o, f.exists, f.digests) // maps are printed in order
	}
	return [sha256.Size]byte(sum.Sum(nil))
}
