package zones_test

import (
	"slices"
	"testing"
)

func TestRollsOneZoneAtATime(t *testing.T) {
	for _, strategy := range []string{onDelete, rollingUpdate} {
		t.Run(strategy, func(t *testing.T) {
			w := newWorld(t)
			w.manage()
			w.settles(strategy)
			w.requests.Reset()
			w.roll("v2")
			w.complete("v2")
			testimony := w.witness.testify()
			if want := []string{"zone-a", "zone-b", "zone-c"}; !slices.Equal(testimony.order, want) {
				t.Errorf("zones went in the order %v, want %v", testimony.order, want)
			}
			if len(testimony.gone) != 9 {
				t.Errorf("%d Pods were taken, want 9: %v", len(testimony.gone), testimony.gone)
			}
			t.Logf("%d writes: %v", len(w.requests.Writes()), w.requests.Writes())
		})
	}
}
