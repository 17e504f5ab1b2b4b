package hub

import (
	"errors"
	"fmt"
	"time"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/window"
)

// opening is whether a window is open, and when the next one opens.
func opening(windows []v1alpha1.Window, now time.Time) (open bool, next time.Time, err error) {
	for i := range windows {
		w, err := parseWindow(&windows[i])
		if err != nil {
			return false, time.Time{}, fmt.Errorf("spec.rollout.windows[%d].%w", i, err)
		}
		open = open || !w.Closes(now).IsZero()
		next = earlier(next, w.Opens(now))
	}
	return open, next, nil
}

// parseWindow says of a mistake in which field it is.
func parseWindow(w *v1alpha1.Window) (window.Window, error) {
	parsed, err := window.Parse(w.Schedule, time.Duration(w.DurationSeconds)*time.Second, w.TimeZone)
	switch {
	case errors.Is(err, window.ErrTimeZone):
		return parsed, fmt.Errorf("timeZone: %q %w", w.TimeZone, err)
	case err != nil:
		return parsed, fmt.Errorf("schedule: %q %w", w.Schedule, err)
	default:
		return parsed, nil
	}
}

// earlier is the earlier of two moments, of which zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
