// Package window computes when a maintenance window is open, and when it opens next. A window
// opens by a schedule as in a CronJob, in a time zone, and stays open for a duration. The
// package is pure: the caller passes the time, and decides what may happen in a window.
package window

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // a time zone has to mean the same on every machine

	"github.com/robfig/cron/v3"
)

// Window opens by a schedule and stays open for a while.
type Window struct {
	schedule cron.Schedule
	duration time.Duration
	place    *time.Location
}

// The mistakes that [Parse] finds, each with its fix.
var (
	// ErrSchedule: the schedule is none.
	ErrSchedule = errors.New(`must be a schedule as in a CronJob, such as "0 2 * * 1-5" for two o'clock from Monday to Friday`)
	// ErrNever: the schedule is one that never comes, such as the 30th of February.
	ErrNever = errors.New("never comes; choose a day that there is")
	// ErrTimeZone: the time zone is not known.
	ErrTimeZone = errors.New(`must be the name of a time zone, such as "Europe/London"`)
)

// Parse reads a window. A schedule has the five fields of a CronJob, or is one of
// its names such as @daily. No time zone is UTC.
func Parse(schedule string, duration time.Duration, timeZone string) (Window, error) {
	place, err := time.LoadLocation(timeZone)
	if err != nil || timeZone == "Local" {
		return Window{}, ErrTimeZone
	}
	// What cron itself adds to the format would say the time zone twice, or mean
	// another time with each start of the process.
	if strings.Contains(schedule, "TZ=") || strings.Contains(schedule, "@every") {
		return Window{}, ErrSchedule
	}
	parsed, err := cron.ParseStandard(schedule)
	if err != nil {
		return Window{}, fmt.Errorf("%w: %w", ErrSchedule, err)
	}
	if parsed.Next(time.Unix(0, 0)).IsZero() {
		return Window{}, ErrNever
	}
	return Window{schedule: parsed, duration: duration, place: place}, nil
}

// Closes is when a window that is open must be checked again, because it closes
// or because it would have, had it not opened once more; zero if it is not open.
func (w Window) Closes(now time.Time) time.Time {
	opened := w.next(now.Add(-w.duration))
	if opened.IsZero() || opened.After(now) {
		return time.Time{}
	}
	return opened.Add(w.duration)
}

// Opens is when a window opens next.
func (w Window) Opens(now time.Time) time.Time { return w.next(now) }

// Opening is whether one of the windows is open, and when the next one opens; zero if none
// ever does.
func Opening(windows []Window, now time.Time) (open bool, next time.Time) {
	for _, w := range windows {
		open = open || !w.Closes(now).IsZero()
		if at := w.Opens(now); next.IsZero() || !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	return open, next
}

func (w Window) next(after time.Time) time.Time { return w.schedule.Next(after.In(w.place)).UTC() }
