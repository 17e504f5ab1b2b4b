//go:build !unix

package render

import (
	"os"
	"time"
)

// started is when this process began.
var started = time.Now() //nolint:gochecknoglobals // the time of a process

// processorTime is how long this process runs: nothing else is known here.
func processorTime() time.Duration { return time.Since(started) }

// limitProcess does nothing: there are no such limits here.
func limitProcess() {}

// executable is the path of this program.
func executable() (string, error) { return os.Executable() }
