//go:build preconditions

package preconditions

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var only = flag.String("sims", "zones,fleet", "the simulations to run")

// removal is a precondition, and what removes it.
type removal struct {
	name, file, from, to string
	// also is replaced by nothing, where a second line guards the same.
	also string
	// storms is how many storms may pass before one shows it. Zero if a rollout does not
	// end without it.
	// One is enough where a story shows it, as all stories are played before.
	storms map[string]int
	// zones is true of what the fleet ring does not need: it knows of all assemblages.
	zones bool
}

// worlds is how many whole worlds are played.
const worlds = 3000

func removals() []removal {
	return []removal{
		{
			name: "the status is written with the resourceVersion that was read", file: "act.go",
			from: "object.SetResourceVersion(read.GetResourceVersion())", to: `object.SetResourceVersion("")`,
			storms: map[string]int{"zones": 2000, "fleet": 20000},
		},
		{
			name: "what is permitted counts as done", file: "intents.go",
			from: "return state != Ended && (state != Unseen || !x.Live)", to: "return state == Underway",
		},
		{
			name: "an intent that is not wanted counts until its object has changed", file: "intents.go",
			from: "return state != Ended && (state != Unseen || !x.Live)", to: "return state != Ended && state != Unwanted",
			storms: map[string]int{"zones": 20000, "fleet": 20000},
		},
		{
			name: "an intent that is not wanted is withdrawn by a fence", file: "intents.go",
			from: "x.State(in) == Unwanted && !x.PutOff(in)", to: "false",
		},
		{
			name: "a view that is behind is not decided from", file: "view.go",
			from: "return Older(view, seen)", to: "return false",
			storms: map[string]int{"zones": 20000, "fleet": 20000},
		},
		{
			name: "an object is deleted at the version that was seen", file: "act.go",
			from: "client.Preconditions{UID: &uid, ResourceVersion: &version}", to: "client.Preconditions{}",
			storms: map[string]int{"zones": 20000, "fleet": 20000},
		},
		{
			name: "an object is patched at the version that was seen", file: "act.go",
			from: `metadata["uid"], metadata["resourceVersion"] = uid, version`, to: "_, _, _ = metadata, uid, version",
			storms: map[string]int{"zones": 20000, "fleet": 2000},
		},
		{
			name: "what is not decided from a cache is decided live", file: "loop.go",
			from: "live = true\n\t\t\tcontinue", to: "continue",
			storms: map[string]int{"fleet": 20000},
		},
		{
			name: "what only the API server can tell is asked of it", file: "intents.go",
			from: "return !x.Live && slices.ContainsFunc", to: "return false && slices.ContainsFunc",
			zones: true,
		},
		{
			name: "what was not acted upon in time is permitted again", file: "intents.go",
			from: "x.State(in) == Wanted && !x.isInTime(in) && !x.PutOff(in)", to: "false",
		},
	}
}

// TestRemovals removes each precondition. If no world notices, the precondition is none,
// or the worlds are too tame.
func TestRemovals(t *testing.T) {
	for _, r := range removals() {
		for sim := range strings.SplitSeq(*only, ",") {
			if r.zones && sim != "zones" {
				continue
			}
			t.Run(r.name+"/"+sim, func(t *testing.T) { r.isNoticed(t, sim) })
		}
	}
}

// found is what a simulation prints of a world, or of a story, that fails.
var found = regexp.MustCompile(`((?:seed|story) [^:]+): (.*)`)

func (r *removal) isNoticed(t *testing.T, sim string) {
	t.Helper()
	args := []string{"-test.run=^TestSimulation$", "-seeds=" + strconv.Itoa(worlds)}
	if n := r.storms[sim]; n > 0 {
		args = []string{"-test.run=^TestSimulation$", "-storm", "-seeds=" + strconv.Itoa(n)}
	}
	out, err := exec.CommandContext(t.Context(), r.build(t, sim), args...).CombinedOutput()
	seed := found.FindStringSubmatch(string(out))
	switch {
	case err == nil || seed == nil:
		t.Errorf("no world notices: %v: %s", err, out)
	default:
		t.Logf("%s: %s", seed[1], seed[2])
	}
}

// build builds a simulation without the precondition.
func (r *removal) build(t *testing.T, sim string) (binary string) {
	t.Helper()
	folder := t.TempDir()
	source, err := filepath.Abs(filepath.Join("..", r.file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{r.from, r.also} {
		if n := strings.Count(string(text), part); n != 1 && part != "" {
			t.Fatalf("%s has %q %d times, want once", r.file, part, n)
		}
	}
	changed, overlay := filepath.Join(folder, r.file), filepath.Join(folder, "overlay.json")
	binary = filepath.Join(folder, "sim.test")
	raw, err := json.Marshal(map[string]any{"Replace": map[string]string{source: changed}})
	if err != nil {
		t.Fatal(err)
	}
	without := strings.Replace(string(text), r.from, r.to, 1)
	if r.also != "" {
		without = strings.Replace(without, r.also, "", 1)
	}
	write(t, changed, without)
	write(t, overlay, string(raw))
	run(t.Context(), t, "go", "test", "-vet=off", "-c", "-overlay", overlay, "-o", binary, "github.com/spillway-dev/spillway/internal/"+sim+"/sim")
	return binary
}

func run(ctx context.Context, t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
