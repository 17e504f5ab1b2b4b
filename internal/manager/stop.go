package manager

import (
	"context"

	"github.com/go-logr/logr"
)

// quietStop leaves one line out of the log: when the manager is asked to stop it releases
// its Lease, and controller-runtime logs that as an error.
func quietStop(ctx context.Context, l logr.Logger) logr.Logger {
	if l.GetSink() == nil {
		return l
	}
	return l.WithSink(&stopSink{LogSink: l.GetSink(), stopped: func() bool { return ctx.Err() != nil }})
}

// leaseReleased is the error of controller-runtime when the manager does not lead any more.
const leaseReleased = "leader election lost"

type stopSink struct {
	logr.LogSink

	stopped func() bool
}

// Error implements [logr.LogSink].
func (s *stopSink) Error(err error, message string, keysAndValues ...any) {
	if err != nil && err.Error() == leaseReleased && s.stopped() {
		return
	}
	s.LogSink.Error(err, message, keysAndValues...)
}

// WithValues implements [logr.LogSink].
func (s *stopSink) WithValues(keysAndValues ...any) logr.LogSink {
	return &stopSink{LogSink: s.LogSink.WithValues(keysAndValues...), stopped: s.stopped}
}

// WithName implements [logr.LogSink].
func (s *stopSink) WithName(name string) logr.LogSink {
	return &stopSink{LogSink: s.LogSink.WithName(name), stopped: s.stopped}
}
