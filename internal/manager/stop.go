package manager

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
)

// quietStop logs no error that is part of a stop. When the manager is asked to stop it
// releases its Lease, and controller-runtime logs that as an error. A pass that the stop
// interrupts is logged as interrupted: the next leader decides from the state.
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
	switch {
	case err == nil || !s.stopped():
		s.LogSink.Error(err, message, keysAndValues...)
	case err.Error() == leaseReleased:
	case errors.Is(err, context.Canceled):
		s.Info(0, "interrupted by the stop", append(keysAndValues, "err", err.Error())...)
	default:
		s.LogSink.Error(err, message, keysAndValues...)
	}
}

// WithValues implements [logr.LogSink].
func (s *stopSink) WithValues(keysAndValues ...any) logr.LogSink {
	return &stopSink{LogSink: s.LogSink.WithValues(keysAndValues...), stopped: s.stopped}
}

// WithName implements [logr.LogSink].
func (s *stopSink) WithName(name string) logr.LogSink {
	return &stopSink{LogSink: s.LogSink.WithName(name), stopped: s.stopped}
}
