package zones

import "time"

// Options are what the user of the manager chooses.
type Options struct {
	// Namespaces are those to look at, all if empty.
	Namespaces []string
	// StatusDelay is how old a status may become while nothing is written that it
	// could be part of. Zero is [DefaultStatusDelay], and less writes it in the pass that decides it.
	StatusDelay time.Duration
	// By is the host name of the manager, which its records name.
	By string
	// Now is the clock.
	Now func() time.Time
}

// DefaultStatusDelay is long enough for what passes automatically, such as a Pod
// that is ready and makes room for the next one, never to cost a write.
const DefaultStatusDelay = 5 * time.Second

const (
	// groupsParallel is how many groups are seen to at a time, so that one whose
	// writes hang keeps no other waiting.
	groupsParallel = 32
)
