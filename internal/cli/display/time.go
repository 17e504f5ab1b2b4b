package display

import (
	"time"
)

func timeText(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(momentLayout)
}

const momentLayout = "2006-01-02 15:04:05 UTC"

// elapsed is the time until now in whole seconds, if there is no end yet.
func elapsed(from time.Time, to *time.Time, now time.Time) string {
	if to != nil {
		return to.Sub(from).Round(100 * time.Millisecond).String()
	}
	return max(now.Sub(from), 0).Truncate(time.Second).String()
}
