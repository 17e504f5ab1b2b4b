// Package worlds plays simulated worlds in tests: each from its seed, side by side, up to the
// first in which something goes wrong. What goes wrong is printed with the end of what
// happened and with the command that plays that world again.
package worlds

import (
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/spillway-dev/spillway/internal/replay"
)

var (
	seedFlag   = flag.Uint64("seed", 0, "play this one world, and tell what happens in it")
	fromFlag   = flag.Uint64("from", 0, "how many worlds to leave out before")
	seedsFlag  = flag.Uint64("seeds", 0, "how many worlds to play (default: as many as $WORLDS says, or the package has chosen)")
	replayFlag = flag.Bool("replay", false, "record all decisions, and decide them again in the end")
	stormFlag  = flag.Bool("storm", false, "play the storms alone, which is faster: what they break, and not whether a rollout ends")
)

// shown is how many lines of what happened are printed of a world that went wrong.
const shown = 60

// World is one that was played.
type World interface {
	// Verdict is the first thing that went wrong, empty if nothing did.
	Verdict() string
	// Log is what happened, of a world that keeps a log.
	Log() []string
	// Counts are how often something happened, by its word.
	Counts() Counts
}

// Counts tell whether worlds were wild enough to mean anything.
type Counts map[string]int

// How says how to play a world.
type How struct {
	// Storm is to play the storm alone.
	Storm bool
	// Told is to keep a log.
	Logged bool
}

// Game is what a package plays.
type Game struct {
	// Package is its path from the root of the repository, with ./ before it.
	Package string
	// Play plays the world of a seed.
	Play func(seed uint64, how How) World
	// Seeds is how many worlds are played unless a flag says otherwise.
	Seeds uint64
	// Cost is how many worlds of other packages cost as much as one of this one, if they cost less:
	// so many fewer are played where one number is for all packages.
	Cost uint64
	// OnceWrong are worlds in which a plan was wrong once, and how. They are played first.
	OnceWrong map[uint64]string
	// Stories are worlds in which everything happens on purpose, played before the others.
	Stories map[string]func() World
	// Often is in how many worlds, at the most, something happens once, by its word.
	Often map[string]int
}

// Main spends memory to save time: worlds leave a lot behind, and not for long.
func Main(m *testing.M) {
	debug.SetGCPercent(800)
	flag.Parse()

	if !*replayFlag {
		os.Exit(m.Run())
	}

	os.Exit(replayed(m))
}

// replayed plays the worlds, and decides again all that was decided in them.
func replayed(m *testing.M) int {
	dir, err := os.MkdirTemp("", "decisions")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is temporary

	end, err := replay.Start(replay.Options{Dir: dir, Size: math.MaxInt64})
	if err != nil {
		panic(err)
	}

	code := m.Run()

	end()

	r, err := replay.Again("", []string{dir})
	if err != nil {
		panic(err)
	}

	fmt.Printf("%d decisions were recorded, and %d of them are other ones when they are decided again\n", r.Decisions, len(r.Differing))

	for i := range r.Differing {
		d := &r.Differing[i]
		fmt.Println(d.At, d.Of, d.Differences)
	}

	return max(code, min(len(r.Differing), 1))
}

// Run plays the world of the flag -seed, or else those that were once wrong, the stories, and
// as many worlds as the flag -seeds says.
func (g *Game) Run(t *testing.T) {
	t.Helper()

	if *seedFlag != 0 {
		w := g.Play(*seedFlag, How{Logged: true})
		t.Log("\n" + strings.Join(w.Log(), "\n"))
		g.report(t, *seedFlag, w)

		return
	}

	for seed, how := range g.OnceWrong {
		if !g.report(t, seed, g.Play(seed, How{})) {
			t.Log(how)
		}
	}

	for name, tell := range g.Stories {
		if verdict := tell().Verdict(); verdict != "" {
			t.Errorf("story %q: %s", name, verdict)
		}
	}

	sum := g.playAll(t)
	t.Log(sum)

	if !*stormFlag {
		g.check(t, sum)
	}
}

func (g *Game) playAll(t *testing.T) Counts {
	t.Helper()

	var (
		next  atomic.Uint64
		mutex sync.Mutex
		group sync.WaitGroup
	)

	next.Store(*fromFlag)

	last, sum := *fromFlag+g.seeds(t), Counts{}

	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for seed := next.Add(1); seed <= last && !t.Failed(); seed = next.Add(1) {
				w := g.Play(seed, How{Storm: *stormFlag})

				mutex.Lock()
				g.report(t, seed, w)
				sum.add(w.Counts())
				mutex.Unlock()
			}
		})
	}

	group.Wait()

	return sum
}

// seeds is how many worlds to play. An environment variable says it too: go test remembers the
// result of a test by its environment, and of one with flags of its own never.
func (g *Game) seeds(t *testing.T) uint64 {
	t.Helper()

	if *seedsFlag != 0 {
		return *seedsFlag
	}

	text, ok := os.LookupEnv("WORLDS")
	if !ok {
		return g.Seeds
	}

	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("WORLDS: want a number of worlds, not %q", text)
	}

	return n / max(g.Cost, 1)
}

func (all Counts) add(of Counts) {
	all["worlds"]++

	for what, n := range of {
		all[what] += n
	}
}

// report says what went wrong, and tells the end of it; false if something did.
func (g *Game) report(t *testing.T, seed uint64, w World) bool {
	t.Helper()

	verdict := w.Verdict()
	if verdict == "" {
		return true
	}

	log := g.Play(seed, How{Logged: true}).Log()
	t.Errorf("seed %d: %s\n%s\nplay it again with: go test %s -run TestSimulation -seed=%d -v",
		seed, verdict, strings.Join(log[max(0, len(log)-shown):], "\n"), g.Package, seed)

	return false
}

// check is that the worlds had in them what they are for.
func (g *Game) check(t *testing.T, sum Counts) {
	t.Helper()

	for what, often := range g.Often {
		if sum[what] < sum["worlds"]/often {
			t.Errorf("the worlds are too tame: %d of %q in %d", sum[what], what, sum["worlds"])
		}
	}
}

// CheckSame is that a world can be played again: twice the same happens in it.
func (g *Game) CheckSame(t *testing.T) {
	t.Helper()

	for seed := uint64(1); seed < 10; seed++ {
		first, second := g.Play(seed, How{Logged: true}), g.Play(seed, How{Logged: true})

		if fmt.Sprint(first.Log()) != fmt.Sprint(second.Log()) {
			t.Fatalf("two worlds of seed %d", seed)
		}
	}
}
