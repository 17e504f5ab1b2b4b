package certificate

import (
	"time"

	"github.com/spillway-dev/spillway/internal/ring"
)

// soon is the longest time after our write in which a path must be put back for it to be a quarrel with
// another client, and not one that applies its manifest now and then.
const soon = time.Minute

// quarrels are the pauses between two writes of a quarrel.
func quarrels() ring.Backoff { return ring.Backoff{First: time.Second, Most: 5 * time.Minute} }

// putBack remembers what became of the paths that were written to configurations.
type putBack map[string]*written

// written is the last write of paths to one configuration.
type written struct {
	at time.Time
	// from is the resourceVersion that was overwritten.
	from string
	// key is the one that was written.
	key string
	// stands is true until the paths are seen to be put back.
	stands bool
	// times is how often that was soon, and until is when they are written again.
	times int
	until time.Time
}

// look says of configurations until when their paths are left alone, because another client
// has put back what was written, again and again.
func (p putBack) look(o *observed) {
	for i := range o.configurations {
		c := &o.configurations[i]
		w := p[c.id()]
		if w == nil || len(o.keys) == 0 || w.key != o.keys[0].key {
			continue
		}
		if w.stands && o.lacksPath(c) && c.resourceVersion != w.from {
			w.putBack(o.now)
		}
		c.heldUntil = w.until
	}
}

// putBack notes that another client has written the former paths. Once may be the rollout
// of a manifest; from the second time on the next write waits twice as long as the one before.
func (w *written) putBack(now time.Time) {
	w.stands, w.until = false, time.Time{}
	if w.times++; now.Sub(w.at) > soon {
		w.times = 0
	}
	if w.times > 1 {
		w.until = now.Add(quarrels().After(w.times))
	}
}

// wrote notes that the paths of a configuration were written.
func (p putBack) wrote(i *injection, now time.Time) {
	w := p[i.configuration.id()]
	if w == nil || w.key != i.key {
		w = &written{key: i.key}
		p[i.configuration.id()] = w
	}
	w.at, w.from, w.stands = now, i.configuration.resourceVersion, true
}
