package plans

import (
	"time"

	"github.com/spillway-dev/spillway/internal/plans/pipe"
)

// Options are what a user sets for the ring.
type Options struct {
	// Namespaces are those to watch, all if empty.
	Namespaces []string
	// PipeImage is that of the container that keeps the Pod of a Pipe running, the
	// default if empty.
	PipeImage string
	// DefaultServiceAccount is the ServiceAccount, of the namespace of each Instance that names
	// none, as which its plans act; empty for the manager itself.
	DefaultServiceAccount string
	// Files reads the files of a Pipe; nil reads them by the exec endpoint of the
	// API server.
	Files pipe.Files
	// By is the host name of the manager, which its records name.
	By string
	// Now is the clock.
	Now func() time.Time
}

const (
	// maxConcurrent is how many Instances are reconciled at a time.
	maxConcurrent = 16
	// maxPasses bounds how many passes follow one another without a pause.
	maxPasses = 50
	// maxReads bounds how often a decision may need to read more.
	maxReads = 100
	// versionsKept is how many OperatorVersions are kept in memory as they were last
	// read, so that their content is read only when it has changed.
	versionsKept = 256
	// writeTimeout bounds one write. It is shorter than the time between the moment
	// at which a leader gives up and that at which the next one begins.
	writeTimeout = 5 * time.Second
	// extractTimeout bounds the reading of all files of a Pipe.
	extractTimeout = 30 * time.Second
	// pause is how long an Instance rests after maxPasses, so that a client which
	// keeps undoing what the ring does costs little.
	pause = time.Second
)
