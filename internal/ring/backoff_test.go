package ring_test

import (
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/ring"
)

func TestBackoffDoublesUpToTheMost(t *testing.T) {
	t.Parallel()
	b := ring.Backoff{First: time.Second, Most: 5 * time.Second}
	for attempts, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second} {
		if got := b.After(attempts); got != want {
			t.Errorf("after %d attempts: %s, want %s", attempts, got, want)
		}
	}
	if got := b.After(1 << 40); got != b.Most {
		t.Errorf("after very many attempts: %s, want %s", got, b.Most)
	}
}

// How long what fails waits: a refused write for minutes, a lost conflict for seconds.
func TestBackoffs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ got, want ring.Backoff }{
		"a refused write": {ring.Refused(), ring.Backoff{First: time.Second / 2, Most: 2 * time.Minute}},
		"a conflict":      {ring.Conflicts(), ring.Backoff{First: time.Second / 100, Most: 5 * time.Second}},
		"a pass":          {ring.Passes(), ring.Backoff{First: time.Second / 2, Most: 15 * time.Second}},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
}

func TestEarlierTakesZeroForNever(t *testing.T) {
	t.Parallel()
	var never time.Time
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct{ a, b, want time.Time }{
		{never, never, never}, {noon, never, noon}, {never, noon, noon}, {noon, noon.Add(1), noon}, {noon.Add(1), noon, noon},
	} {
		if got := ring.Earlier(c.a, c.b); !got.Equal(c.want) {
			t.Errorf("the earlier of %s and %s is %s", c.a, c.b, got)
		}
	}
}

func TestOlderTakesTheUnknownForOlder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"", "", false}, {"", "1", true}, {"1", "", false}, {"9", "10", true}, {"10", "9", false}, {"9", "9", false}, {"x", "9", true}, {"9", "x", false}, {"0", "9", true}, {"9", "0", false}, {"0", "0", false},
	} {
		if got := ring.Older(c.a, c.b); got != c.want {
			t.Errorf("%q is older than %q: %t", c.a, c.b, got)
		}
	}
	if got := ring.Newer("9", "10"); got != "10" {
		t.Errorf("the newer of 9 and 10 is %s", got)
	}
	if !ring.IsBehind("9", "10") || ring.IsBehind("10", "10") {
		t.Error("a view is behind if it is older, and only then")
	}
}
