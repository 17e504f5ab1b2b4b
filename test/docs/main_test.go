// Package docs_test holds the pages to what they promise.
//
// Every code block names its class after the fence:
//
//   - sh is what a reader types. The program parses each command of its own: the command
//     exists, and takes these arguments and flags. Targets of make exist. A line that needs
//     no cluster is run as it stands, in the root of the repository.
//   - console is the same with the output, each command after "$ ". Of a command that needs no
//     cluster, the output is compared.
//   - yaml is parsed. The fields, labels and annotations of kinds exist.
//   - json is parsed.
//   - text is shown: output, or a drawing. It is not typed.
//
// A comment "not run: REASON" above a block keeps it from being run. The quick start is run
// from its first line to its last, on a cluster.
//
// Links and anchors lead to what exists, and pictures have a text.
package docs_test

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// TestMain runs the tests; what pages call "spillway" is this program again.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "spillway" {
		testenv.Main(m, testenv.Options{Nodes: 2})
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, command.Environment{
		Args: os.Args, Out: os.Stdout, Err: os.Stderr, Lookup: os.LookupEnv, Now: time.Now,
	})
	stop()
	os.Exit(code)
}
