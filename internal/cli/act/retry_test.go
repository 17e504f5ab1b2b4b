package act

import (
	"testing"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
)

// What waits because its object changes after each roll can be retried, and what waits for something else cannot.
func TestKeepsChanging(t *testing.T) {
	for reason, want := range map[string]bool{"ConfigKeepsChanging": true, "WaitingForPrevious": false} {
		r := &v1alpha1.ConfigRollout{Rollout: &v1alpha1.RolloutRecord{Causes: []v1alpha1.RolloutCause{{Reason: "Coalescing"}, {Reason: reason}}}}
		if keepsChanging(r) != want {
			t.Errorf("%s: %v", reason, !want)
		}
	}
	if keepsChanging(&v1alpha1.ConfigRollout{}) {
		t.Error("there is no rollout")
	}
}
