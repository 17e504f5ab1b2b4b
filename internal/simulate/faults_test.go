package simulate_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// The manager stops before, or after, every write of every scenario of all rings, for no time or for an hour: what
// happens in the end is what happens without a fault, step by step, and at no instant is more down.
func TestTheManagerStopsAtEveryWrite(t *testing.T) {
	for _, name := range scenarios(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, change := objects(read(t, name, "base.yaml")), objects(read(t, name, "change.yaml"))
			o := benchOptions()
			o.Within = 4 * time.Hour
			o.Readiness = world.Readiness{Default: time.Second, Of: map[string]time.Duration{}}
			for _, of := range never[name] {
				o.Readiness.Of[of] = world.Never
			}
			if name == "plan-gate" { // elsewhere it waits
				o.Gates = map[string]v1alpha1.GateResult{"ok": simulate.Approved}
			}
			if configure := configured[name]; configure != nil {
				o.Config.Namespaces = []string{o.Namespace}
				configure(&o.Config)
			}
			ctx := logr.NewContext(t.Context(), logr.Discard())
			before, err := simulate.Prepare(ctx, base, o)
			if err != nil {
				t.Fatal(err)
			}
			play := func(f simulate.Fault) simulate.Played {
				played, err := before.Play(ctx, change, f)
				if err != nil {
					t.Fatalf("%+v: %v", f, err)
				}
				return played
			}
			faultless := play(simulate.Fault{})
			for write := 1; write <= faultless.Writes; write++ {
				for _, f := range []simulate.Fault{{Write: write}, {Write: write, Answered: true}, {Write: write, Down: time.Hour}, {Write: write, Answered: true, Down: time.Hour}} {
					compare(t, fmt.Sprintf("%+v", f), faultless, play(f))
				}
			}
			for _, f := range []simulate.Fault{{Write: 1, Each: true}, {Write: 1, Each: true, Answered: true}} {
				compare(t, fmt.Sprintf("%+v", f), faultless, play(f))
			}
			t.Logf("%d writes", faultless.Writes)
		})
	}
}

func compare(t *testing.T, fault string, faultless, got simulate.Played) {
	t.Helper()
	if parallel[t.Name()[strings.LastIndex(t.Name(), "/")+1:]] {
		faultless.Steps, got.Steps = sorted(faultless.Steps), sorted(got.Steps)
		faultless.After, got.After = withoutHistory(faultless.After), withoutHistory(got.After)
	}
	for what, diff := range map[string]string{
		"steps": cmp.Diff(faultless.Steps, got.Steps), "stuck": cmp.Diff(faultless.Stuck, got.Stuck), "after": differing(faultless.After, got.After),
	} {
		if diff != "" {
			t.Errorf("%s: %s (-without +with the fault):\n%s", fault, what, diff)
		}
	}
	for of, most := range got.Peaks {
		if most > faultless.Peaks[of] {
			t.Errorf("%s: of %s %d were down, instead of at most %d", fault, of, most, faultless.Peaks[of])
		}
	}
}

// parallel are the scenarios in which no order is asked for, so that what is seen first goes first: zones whose
// templates the config ring or a plan changes one after another, and parts of a plan.
var parallel = map[string]bool{"zones-config": true, "plan-waits-for-zones": true, "plan-parallel-phases": true, "plan-parallel-steps": true}

func sorted(steps map[string][]string) map[string][]string {
	all := map[string][]string{}
	for of, those := range steps {
		all[of] = slices.Sorted(slices.Values(those))
	}
	return all
}

// withoutHistory are objects without what they say of the order in which something went.
func withoutHistory(after map[string]string) map[string]string {
	all := map[string]string{}
	for name, text := range after {
		lines := strings.Split(text, "\n")
		all[name] = strings.Join(slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, ".history[") }), "\n")
	}
	return all
}

// differing are the lines of objects that differ.
func differing(faultless, got map[string]string) string {
	var text strings.Builder
	all := maps.Clone(faultless)
	maps.Copy(all, got)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, is := strings.Split(faultless[name], "\n"), strings.Split(got[name], "\n")
		for _, line := range was {
			if !slices.Contains(is, line) {
				fmt.Fprintf(&text, "- %s: %s\n", name, line)
			}
		}
		for _, line := range is {
			if !slices.Contains(was, line) {
				fmt.Fprintf(&text, "+ %s: %s\n", name, line)
			}
		}
	}
	return text.String()
}
