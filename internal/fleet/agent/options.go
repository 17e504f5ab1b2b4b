package agent

import "time"

const (
	// assemblagesParallel is how many assemblages are worked on at a time.
	assemblagesParallel = 8
	// passesParallel bounds how many passes follow one another without a look at the queue.
	passesParallel = 5
	// looksParallel bounds how often a decision may ask to look at more.
	looksParallel = 70
	// retryFirst and retryPass bound how long to wait before a pass that failed is made
	// again.
	retryFirst = 20 * time.Millisecond
	retryPass  = time.Minute
	// conflictPause is how long to wait after a conflict until the cache has caught up.
	conflictPause = 50 * time.Millisecond
	// writeTimeout is how long a write may take.
	writeTimeout = 30 * time.Second
)

// Options configures the controllers.
type Options struct {
	// Namespaces are those to look at, all if empty.
	Namespaces []string
	// Now is the clock.
	Now func() time.Time
}
