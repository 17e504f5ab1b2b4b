package fleet

import (
	"fmt"
	"time"
	_ "time/tzdata" // images without time zones are common

	"github.com/robfig/cron/v3"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
)

// schedules are those of five fields, and "@daily" and its like.
var schedules = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// opening is whether a window is open, and when the next one opens; zero if none
// ever does.
func opening(windows []v1alpha1.Window, now time.Time) (open bool, next time.Time, err error) {
	for i := range windows {
		w := &windows[i]
		schedule, zone, err := read(w)
		if err != nil {
			return false, time.Time{}, fmt.Errorf("spec.rollout.windows[%d]: %w", i, err)
		}
		local := now.In(zone)
		began := schedule.Next(local.Add(-time.Duration(w.DurationSeconds) * time.Second))
		open = open || !began.IsZero() && !began.After(now)
		next = earlier(next, schedule.Next(local))
	}
	return open, next, nil
}

func read(w *v1alpha1.Window) (cron.Schedule, *time.Location, error) {
	zone, err := time.LoadLocation(w.TimeZone)
	if err != nil {
		return nil, nil, fmt.Errorf("timeZone: there is no time zone %q; write one such as \"Europe/London\"", w.TimeZone)
	}
	schedule, err := schedules.Parse(w.Schedule)
	if err != nil {
		return nil, nil, fmt.Errorf("schedule: %q is no cron expression of five fields: %w", w.Schedule, err)
	}
	return schedule, zone, nil
}

// earlier is the earlier of two moments, of which zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
