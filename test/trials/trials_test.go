package trials_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// isProgram, in the environment, makes this process the program that is tried, where no
// other is named.
const isProgram = "SPILLWAY_TRIALS_PROGRAM"

var every = flag.Bool("every", false, "try every promise, not only some of them")

// trial is a promise, and how it is tried.
type trial struct {
	// point is a word for what it is about, and promise what is promised.
	point, promise string
	// brief trials are part of every run of the tests.
	brief bool
	// try tries it. Nil if it cannot be tried from outside, because of without.
	try     func(*world)
	without string
}

func all() []trial {
	return slices.Concat(configTrials(), zonesTrials(), plansTrials(), fleetTrials(), securityTrials())
}

func TestMain(m *testing.M) {
	if os.Getenv(isProgram) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		code := cli.Run(ctx, command.Environment{Args: os.Args, Out: os.Stdout, Err: os.Stderr, Lookup: os.LookupEnv, Now: time.Now})
		stop()
		os.Exit(code)
	}
	testenv.Parallel(4)
	testenv.Main(m, testenv.Options{Nodes: 2})
}

// TestTrials tries the promises, and prints what became of each.
func TestTrials(t *testing.T) {
	trials := slices.DeleteFunc(all(), func(tr trial) bool { return !*every && !tr.brief })
	results := make([]string, len(trials))
	t.Run("of", func(t *testing.T) {
		for i, tr := range trials {
			if tr.try == nil {
				results[i] = "not tried: " + tr.without
				continue
			}
			t.Run(strings.ReplaceAll(tr.point, " ", "_"), func(t *testing.T) {
				w := newWorld(t)
				results[i] = "FAILED"
				tr.try(w)
				if !t.Failed() {
					results[i] = w.result
				}
			})
		}
	})
	for i, tr := range trials {
		fmt.Printf("%-24s %s\n%24s %s\n", tr.point, tr.promise, "", results[i])
	}
}
