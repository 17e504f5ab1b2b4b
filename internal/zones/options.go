package zones

import "time"

// Options are the choices of whoever runs the manager.
type Options struct {
	// Namespaces are those to look at, all if empty.
	Namespaces []string
	// StatusDelay is how old a status may become while nothing is written that it
	// could be part of. Zero is [DefaultStatusDelay].
	StatusDelay time.Duration
	// Now is the clock.
	Now func() time.Time
}

// DefaultStatusDelay is long enough for what passes by itself, such as a Pod
// that is ready and makes room for the next one, never to cost a write.
const DefaultStatusDelay = 5 * time.Second

const (
	// groupsParallel is how many groups are seen to at a time, so that one whose
	// writes hang keeps nobody else waiting.
	groupsParallel = 32
	// writeTimeout bounds one write, so that a hanging admission webhook is noticed.
	writeTimeout = 10 * time.Second
	// A write that was refused is tried again after retryFirst, then after twice
	// as long, up to retryMost.
	retryFirst     = 500 * time.Millisecond
	retryDoublings = 9
	retryMost      = 2 * time.Minute
	// One for which somebody else was faster is decided anew once the cache shows
	// that, or after overtakenFirst, then after twice as long, up to overtakenMost.
	overtakenFirst     = 10 * time.Millisecond
	overtakenDoublings = 9
	overtakenMost      = 5 * time.Second
	// unseenLimit is how long the cache may not have a group that was created.
	unseenLimit = 10 * time.Second
	// retryPass is the longest wait after a pass that could not observe at all.
	retryPass = 15 * time.Second
)

func (o Options) statusDelay() time.Duration {
	if o.StatusDelay > 0 {
		return o.StatusDelay
	}
	return DefaultStatusDelay
}

// backoff doubles a first delay with each attempt before this one.
func backoff(first time.Duration, attempts, doublings int, most time.Duration) time.Duration {
	return min(first<<min(attempts, doublings), most)
}
