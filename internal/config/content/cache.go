package content

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reduced is a reader of ConfigMaps and Secrets that were reduced by [Digest], for
// clients that read repeatedly and keep no values.
type Reduced interface {
	client.Reader

	// Values reads them as they are.
	Values() client.Reader
	// Hashed are the hashes that were computed already, nil if they are not kept.
	Hashed() *HashCache
}

// HashCache keeps the hashes of config from one pass to the next, so that values
// are read only where they have changed. It is safe for concurrent use; a nil one
// keeps nothing.
type HashCache struct {
	mu sync.Mutex
	// used are those that were asked for since there were too many, known those before.
	known, used map[[sha256.Size]byte]*Hashes
}

// mostHashes is how many are kept at least, of those that no pass asks for any more.
const mostHashes = 20_000

// recall sets the hashes of a workload, if they are known.
func (h *HashCache) recall(k *Known) bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key := k.key()
	if found := h.known[key]; found != nil {
		h.add(key, found)
	}
	found := h.used[key]
	if found != nil {
		k.hashes, k.hashedFor, k.hashedAs = found, k.fingerprint, k.fingerprint
	}
	return found != nil
}

// keep remembers the hashes of a workload for as long as they are asked for.
func (h *HashCache) keep(k *Known) {
	if h == nil || k.hashes == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.add(k.key(), k.hashes)
}

func (h *HashCache) add(key [sha256.Size]byte, hashes *Hashes) {
	if h.used == nil {
		h.used = map[[sha256.Size]byte]*Hashes{}
	}
	h.used[key] = hashes
}

// turn ends a pass. Once there are many, it forgets what was not asked for in a long time.
func (h *HashCache) turn() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.used) >= mostHashes {
		h.known, h.used = h.used, nil
	}
}

// key identifies all that the hashes of a workload follow from: the scopes, and
// the digests of each object.
func (k *Known) key() [sha256.Size]byte {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%v", k.scopes())
	for _, o := range slices.SortedFunc(maps.Keys(k.facts), Object.Compare) {
		f := k.facts[o]
		_, _ = fmt.Fprintf(sum, "%v %v %q", o, f.exists, f.digests) // maps are printed in order
	}
	return [sha256.Size]byte(sum.Sum(nil))
}
