package ring_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/ring"
)

// What runs for too long hangs; what has ended, and what waits, does not.
func TestAPassThatHangs(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := ring.NewRunning(func() time.Time { return now })
	p.Begin("a ring that goes on")()
	end := p.Begin("zones")
	now = now.Add(time.Minute)
	if err := p.Hanging(time.Minute); err != nil {
		t.Error(err)
	}
	now = now.Add(time.Hour)
	if err := p.Hanging(time.Minute); err == nil || !strings.Contains(err.Error(), "a pass of zones hangs for 1h1m0s") {
		t.Errorf("said %v", err)
	}
	end()
	if err := p.Hanging(time.Minute); err != nil {
		t.Errorf("it has ended: %v", err)
	}
}

// The loop of a ring is under way while it observes, and not after.
func TestALoopIsUnderWayWhileItRuns(t *testing.T) {
	type world struct{}
	l := ring.Loop[world, int, int]{
		Most: 1, Now: time.Now,
		Observe: func(context.Context, bool) (world, error) {
			if err := ring.UnderWay.Hanging(-time.Hour); err == nil || !strings.Contains(err.Error(), "ring_test.world") {
				t.Errorf("while it observes: %v", err)
			}
			return world{}, ring.ErrGone
		},
	}
	if _, err := l.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := ring.UnderWay.Hanging(-time.Hour); err != nil && strings.Contains(err.Error(), "ring_test.world") {
		t.Errorf("after it: %v", err)
	}
}
