package scaling

import (
	"testing"
	"time"

	"github.com/spillway-dev/spillway/rollout"
)

// A moment that passes while a pass is made is not waited for in vain: the next pass is
// made immediately.
func TestAMomentThatPassesDuringThePass(t *testing.T) {
	at := time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)
	for name, now := range map[string]time.Time{"before": at.Add(-time.Second), "then": at, "after": at.Add(time.Second)} {
		m := newMemory()
		if next := m.learn(now, &Plan{Plan: rollout.Plan{Wake: at}}, &results{}); !next.Wake.Equal(at) || next.Again {
			t.Errorf("%s: %+v", name, next)
		}
	}
}
