package agent

import "time"

// assemblagesParallel is how many assemblages are worked on at a time.
const assemblagesParallel = 8

// Options configures the controllers.
type Options struct {
	// Namespaces are those to look at, all if empty.
	Namespaces []string
	// Now is the clock.
	Now func() time.Time
}
