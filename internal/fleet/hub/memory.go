package hub

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/ring"
)

// memory is what is remembered of a module from pass to pass. All of it is about
// caches that lag and writes that fail: a manager that begins without it decides the
// same, and asks the API server for some of it twice.
type memory struct {
	ring.Memory[client.Object]

	key types.NamespacedName
	// asOf is how new the newest view was.
	asOf string
	// live is what the API server itself has answered in this reconcile, nil if it
	// was not asked.
	live *view
	// foreign are clusters of which another manager keeps the sync, by the
	// resourceVersion of the assemblage from which ours was removed. That holds for
	// what a cache that lags shows of it, too.
	foreign map[string]string
	// drifts are whether syncs are what their revisions say, by assemblage.
	drifts map[types.UID]drift
}

func newMemory(key types.NamespacedName) *memory {
	return &memory{key: key, foreign: map[string]string{}, drifts: map[types.UID]drift{}}
}

// learn remembers what became of a pass, and returns when to observe again; zero if
// time alone changes nothing.
func (m *memory) learn(now time.Time, p *pass, r *results) time.Time {
	wake := ring.Earlier(p.wake, ring.Learn(&m.Memory, now, r, p.differs))
	for i := range r.Writes {
		if w := &r.Writes[i]; w.Err == nil && w.Write.foreign {
			m.foreign[w.Change.Object] = w.Write.version
			wake = now // no watch tells: of the entry only its owner has changed
		}
	}
	return wake
}
