package window_test

import (
	"errors"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/window"
)

func at(value string) time.Time {
	t, err := time.Parse(time.RFC3339, value)
	if err != nil {
		panic(err)
	}
	return t
}

func TestWindow(t *testing.T) {
	for name, test := range map[string]struct {
		schedule, zone string
		duration       time.Duration
		now            string
		closes, opens  string
	}{
		"before it":               {"0 2 * * *", "", time.Hour, "2026-05-04T01:59:59Z", "", "2026-05-04T02:00:00Z"},
		"at its first instant":    {"0 2 * * *", "", time.Hour, "2026-05-04T02:00:00Z", "2026-05-04T03:00:00Z", "2026-05-05T02:00:00Z"},
		"within it":               {"0 2 * * *", "", time.Hour, "2026-05-04T02:59:59Z", "2026-05-04T03:00:00Z", "2026-05-05T02:00:00Z"},
		"at its end":              {"0 2 * * *", "", time.Hour, "2026-05-04T03:00:00Z", "", "2026-05-05T02:00:00Z"},
		"over midnight":           {"30 23 * * *", "", time.Hour, "2026-05-05T00:15:00Z", "2026-05-05T00:30:00Z", "2026-05-05T23:30:00Z"},
		"on days of the week":     {"0 2 * * 1-5", "", time.Hour, "2026-05-02T02:30:00Z", "", "2026-05-04T02:00:00Z"},
		"by a name":               {"@daily", "", time.Hour, "2026-05-02T00:30:00Z", "2026-05-02T01:00:00Z", "2026-05-03T00:00:00Z"},
		"in a time zone":          {"0 2 * * *", "Europe/London", time.Hour, "2026-05-04T01:30:00Z", "2026-05-04T02:00:00Z", "2026-05-05T01:00:00Z"},
		"and in its winter":       {"0 2 * * *", "Europe/London", time.Hour, "2026-01-04T01:30:00Z", "", "2026-01-04T02:00:00Z"},
		"that opens once more":    {"*/10 * * * *", "", 15 * time.Minute, "2026-05-04T02:12:00Z", "2026-05-04T02:15:00Z", "2026-05-04T02:20:00Z"},
		"and is open all the day": {"*/10 * * * *", "", 15 * time.Minute, "2026-05-04T02:15:00Z", "2026-05-04T02:25:00Z", "2026-05-04T02:20:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := window.Parse(test.schedule, test.duration, test.zone)
			if err != nil {
				t.Fatal(err)
			}
			closes := time.Time{}
			if test.closes != "" {
				closes = at(test.closes)
			}
			if got := w.Closes(at(test.now)); !got.Equal(closes) {
				t.Errorf("it closes at %s, want %s", got, closes)
			}
			if got := w.Opens(at(test.now)); !got.Equal(at(test.opens)) {
				t.Errorf("it opens at %s, want %s", got, test.opens)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	for name, test := range map[string]struct {
		schedule, zone string
		want           error
	}{
		"nothing":                     {"", "", window.ErrSchedule},
		"too few fields":              {"0 2 * *", "", window.ErrSchedule},
		"an hour that is none":        {"0 25 * * *", "", window.ErrSchedule},
		"a time zone in the schedule": {"CRON_TZ=Asia/Tokyo 0 2 * * *", "", window.ErrSchedule},
		"no schedule but a pace":      {"@every 1h", "", window.ErrSchedule},
		"a day that there is not":     {"0 2 30 2 *", "", window.ErrNever},
		"a time zone that is none":    {"0 2 * * *", "Atlantis", window.ErrTimeZone},
		"that of whichever machine":   {"0 2 * * *", "Local", window.ErrTimeZone},
		"a path instead of a name":    {"0 2 * * *", "../etc/passwd", window.ErrTimeZone},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := window.Parse(test.schedule, time.Hour, test.zone); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}
