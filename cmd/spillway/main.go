// Spillway carries changes to running Pods in a safe order. This is the
// manager, the command line and, through a link named kubectl-spillway, the
// kubectl plugin.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	// An image of this one file has no roots of trust; the ring fleet asks Git servers.
	_ "golang.org/x/crypto/x509roots/fallback"

	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, command.Environment{
		Args: os.Args, Out: os.Stdout, Err: os.Stderr, Lookup: os.LookupEnv, Now: time.Now,
	})
	stop()
	os.Exit(code)
}
