// Command node prepares the real node of the tests: "check" says whether one can run on this
// machine, and exits with 1 and the reason if not; "image FILE" writes the image of its Pods, for
// other clusters to load; "start" runs a control plane with such a node until it is interrupted, and prints
// its kubeconfig; without an argument it builds the programs, and prints their folder.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/node"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // the first of this program
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 0:
		folder, err := node.Build(ctx, os.Stderr)
		if err == nil {
			_, _ = fmt.Fprintln(os.Stdout, folder)
		}
		return err
	case len(args) == 1 && args[0] == "check":
		return node.Check()
	case len(args) == 2 && args[0] == "image":
		return node.WriteImage(ctx, args[1])
	case len(args) == 1 && args[0] == "start":
		return start(ctx)
	default:
		return errors.New("usage: node [check | image FILE | start]")
	}
}

// start runs a cluster until the context ends.
func start(ctx context.Context) error {
	cp, err := controlplane.Start(ctx, controlplane.Options{Scheduler: true, Progress: os.Stderr})
	if err != nil {
		return err
	}
	n, err := node.Join(ctx, cp, "real", os.Stderr)
	if err != nil {
		return errors.Join(err, cp.Stop())
	}
	_, _ = fmt.Fprintln(os.Stdout, cp.Kubeconfig())
	<-ctx.Done()
	return errors.Join(n.Stop(), cp.Stop())
}
