package testenv

import (
	"fmt"
	"testing"

	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

// Story tells a story of at least so many writes without a fault, and then [AtEveryWrite]: what changes while a manager
// is down may be written as one.
func Story(t *testing.T, writes int, story func(t *testing.T, begin fault.Begin)) {
	t.Helper()
	t.Run("without a fault", func(t *testing.T) {
		i := fault.New()
		story(t, i.WithSuccessor)
		if n := i.Made(); n < writes {
			t.Errorf("the story has %d writes, want at least %d", n, writes)
		}
	})
	AtEveryWrite(t, writes/2, story)
}

// AtEveryWrite is [fault.Relay] for all writes, of which at least so many are made, before them and after them; and one
// manager stops in the middle of them, and is followed by one that goes on: where tests run at their whole size, after
// each of them. The simulations do that for all scenarios.
func AtEveryWrite(t *testing.T, least int, story func(t *testing.T, begin fault.Begin)) {
	t.Helper()
	for _, when := range []fault.When{fault.Before, fault.After} {
		t.Run(when.String()+" each write", func(t *testing.T) {
			if n := fault.Relay(when, nil, func(begin fault.Begin) { story(t, begin) }); n < least {
				t.Errorf("%d writes were made, want at least %d", n, least)
			}
		})
	}
	middle := (least + 1) / 2
	for n := Size(middle, 1); n <= Size(middle, 3*least); n++ {
		t.Run(fmt.Sprintf("%s write %d", fault.After, n), func(t *testing.T) {
			i := fault.New()
			i.StopAt(n, fault.After)
			story(t, i.WithSuccessor)
			if !i.HasStopped() && n <= least {
				t.Errorf("there is no write %d", n)
			}
		})
	}
}
