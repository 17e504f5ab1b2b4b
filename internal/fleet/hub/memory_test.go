package hub

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
)

// What was made is not made twice while no cache shows it, and is made again once one has
// shown it and does so no more, or none ever has.
func TestWhatWasMadeIsMadeAgainIfItIsGone(t *testing.T) {
	var all memories
	m, now := all.of(types.NamespacedName{Namespace: "n", Name: "app"}), time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)
	write := decision.Write{Act: decision.CreateRevision, Revision: "app-1"}
	m.note(now, &outcome{write: write})
	if left, again := m.pending([]decision.Write{write}); len(left) > 0 || !again.Equal(now.Add(decision.WithdrawAfter)) {
		t.Errorf("it is made twice: %v, and looked at again at %s", left, again)
	}
	m.seen(decision.CreateRevision, "app-1")
	if left, _ := m.pending([]decision.Write{write}); len(left) != 1 {
		t.Error("somebody has deleted it, and it is not made again")
	}
	m.note(now, &outcome{write: write})
	m.expire(now.Add(decision.WithdrawAfter))
	if left, _ := m.pending([]decision.Write{write}); len(left) != 1 {
		t.Error("no cache has ever shown it, and it is not made again")
	}
}
