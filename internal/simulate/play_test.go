package simulate_test

import (
	"slices"
	"testing"

	"github.com/spillway-dev/spillway/internal/simulate"
)

// TestAForkGoesOnAsItsWorld forks a world at each moment and lets the fork go on: what happens is
// what happens without a fork.
func TestAForkGoesOnAsItsWorld(t *testing.T) {
	t.Parallel()
	for _, name := range scenarios(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, change := objects(read(t, name, "base.yaml")), objects(read(t, name, "change.yaml"))
			whole, err := simulate.Run(t.Context(), base, change, benchOptions())
			if err != nil {
				t.Fatal(err)
			}
			p, err := simulate.Start(t.Context(), base, benchOptions())
			if err != nil {
				t.Fatal(err)
			}
			if p, err = p.Fork(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := p.Apply(t.Context(), change); err != nil {
				t.Fatal(err)
			}
			for more, forks := true, 0; more && forks < 300; forks++ {
				if p, err = p.Fork(t.Context()); err != nil {
					t.Fatal(err)
				}
				if more, err = p.Next(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			want, got := lines(whole.Steps), lines(p.Steps())
			if n := min(len(want), len(got)); !slices.Equal(want, got[:n]) {
				t.Errorf("with forks:\n%q\nwithout:\n%q", got, want)
			}
		})
	}
}
