package plans

import "time"

// Options are the choices of whoever runs the manager.
type Options struct {
	// Namespaces are those to look at, all if empty.
	Namespaces []string
	// PipeImage is that of the container that keeps the Pod of a Pipe running, the
	// default if empty.
	PipeImage string
	// Files reads the files of a Pipe; nil reads them by the exec endpoint of the
	// API server.
	Files Files
	// Now is the clock.
	Now func() time.Time
}

const (
	// instancesParallel is how many Instances are looked at at a time.
	instancesParallel = 16
	// writeTimeout bounds one write. It is shorter than the time between the moment
	// at which a leader gives up and that at which the next one begins.
	writeTimeout = 5 * time.Second
	// extractTimeout bounds the reading of all files of a Pipe.
	extractTimeout = 30 * time.Second
	// A pass that failed is tried again after retryFirst, then after twice as long,
	// up to retryPass.
	retryFirst = 200 * time.Millisecond
	retryPass  = 15 * time.Second
	// overtakenPause is how long to wait for a view that is newer.
	overtakenPause = 200 * time.Millisecond
	// breath is how long an Instance rests that has had much to do, so that whatever
	// keeps undoing what the ring does costs little.
	breath = time.Second
)
