package describe

import (
	"fmt"
	"time"
)

// Moment is how a time is shown.
func Moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// In is a range as times from now on: "in 4m (3m to 6m)".
func In(now time.Time, r Range) string {
	in := func(at time.Time) string { return max(0, at.Sub(now)).Round(time.Second).String() }
	if r.Earliest.Equal(r.Latest) {
		return "in " + in(r.Expected)
	}
	return fmt.Sprintf("in %s (%s to %s)", in(r.Expected), in(r.Earliest), in(r.Latest))
}

// Age is how long ago something was, in the largest unit, as kubectl writes it.
func Age(now time.Time, since *time.Time) string {
	if since == nil {
		return ""
	}
	d := max(now.Sub(*since), 0)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}
