package display

import (
	"time"

	"github.com/spillway-dev/spillway/internal/describe"
)

func timeText(t *time.Time) string {
	if t == nil {
		return ""
	}
	return describe.Moment(*t)
}

// elapsed is the time until now in whole seconds, if there is no end yet.
func elapsed(from time.Time, to *time.Time, now time.Time) string {
	if to != nil {
		return to.Sub(from).Round(100 * time.Millisecond).String()
	}
	return max(now.Sub(from), 0).Truncate(time.Second).String()
}
