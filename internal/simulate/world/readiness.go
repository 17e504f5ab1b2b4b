package world

import (
	"strings"
	"time"
)

// Never is a readiness time: the Pod runs and is never ready.
const Never = time.Duration(-1)

// DefaultReady is how long a Pod takes of which nothing is said and none was seen.
const DefaultReady = 30 * time.Second

// Readiness is how long Pods take until they are ready, and Jobs until they are done.
type Readiness struct {
	// Default is that of Pods of which nothing else is said.
	Default time.Duration
	// Of is by "statefulset/x", in lower case, of what the Pods belong to. One that is named
	// itself, as "pod/x-0", counts before that.
	Of map[string]time.Duration
}

// For returns the time of the Pods of an object.
func (r Readiness) For(kind, name string) time.Duration {
	if d, ok := r.Of[strings.ToLower(kind)+"/"+name]; ok {
		return d
	}
	return r.Default
}
