// Package docs_test holds the pages to what they promise.
//
// Every code block names its class after the fence:
//
//   - sh is what a reader types. The program parses each command of its own: the command
//     exists, and takes these arguments and flags. Targets of make exist. It is run: without a
//     cluster, in the root of the repository, or else on one on which a manager works, where
//     the blocks of a page follow one another.
//   - console is the same with the output, each command after "$ ". Of a command that needs no
//     cluster, the output is compared.
//   - yaml is parsed. The fields, labels and annotations of kinds exist. The API server accepts
//     it, by server-side dry run.
//   - json is parsed.
//   - text is shown: output, or a drawing. It is not typed.
//
// A comment above a block says what else there is to know:
//
//   - "not run: REASON" keeps it from being run, or applied.
//   - "exits CODE: COMMAND" is about the lines that begin so; all others succeed.
//   - "part of KIND/NAME at FIELD" is about YAML that is no whole object; without the field it
//     begins at the top of the object.
//   - "values" is about YAML that the command install and the chart read.
//
// What a page takes for granted is made by testdata/PAGE.sh: each part of it runs before the
// first block with the text of its heading. The quick start is run from its first line to its
// last, in one shell.
//
// Links and anchors lead to what exists, and pictures have a text.
package docs_test

import (
	"context"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// TestMain runs the tests; what pages call "spillway" is this program again.
func TestMain(m *testing.M) {
	if name := filepath.Base(os.Args[0]); name != "spillway" && name != "kubectl-kudo" {
		testenv.Main(m, testenv.Options{Nodes: 2, Alone: true}) // pages install Spillway, and show the whole cluster
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, command.Environment{
		Args: os.Args, Out: output(stop), Err: os.Stderr, Lookup: os.LookupEnv, Now: time.Now,
	})
	stop()
	os.Exit(code)
}

// interrupted is set where a reader stops by Ctrl+C what does not end.
const interrupted = "INTERRUPTED"

// output is where a command writes. One that does not end is stopped once it has written.
func output(stop func()) io.Writer {
	if os.Getenv(interrupted) == "" || len(os.Args) < 2 {
		return os.Stdout
	}
	switch os.Args[1] {
	case "dashboard":
	case "watch":
		if len(os.Args) > 2 && strings.Contains(os.Args[2], "/") {
			return os.Stdout // it ends with what is watched
		}
	default:
		return os.Stdout
	}
	return stopping{stop}
}

// stopping is the output of a command that is stopped once it has written.
type stopping struct{ stop func() }

// Write implements [io.Writer].
func (s stopping) Write(p []byte) (int, error) {
	defer s.stop()
	return os.Stdout.Write(p)
}
