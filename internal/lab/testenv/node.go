package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"

	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/node"
)

// MainNode is [Main] with a real node, which is the only one, and a control plane that no other
// package uses; or with an existing cluster. Where there can be neither it says why. More tests run
// at a time than there are processors: most of the time they wait for containers.
func MainNode(m *testing.M, tests int) {
	Parallel(tests)
	if err := check(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	end := func() error { return nil }
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		fmt.Fprintln(os.Stderr, "interrupted:", end())
		os.Exit(130)
	}()
	code := run(m, Options{Alone: true, Scheduler: true}, func(ctx context.Context, cp *controlplane.ControlPlane) error {
		if cp.Dir == "" {
			return nil
		}
		n, err := node.Join(ctx, cp, "real", os.Stderr)
		if err != nil {
			return err
		}
		end = sync.OnceValue(func() error { return errors.Join(n.Stop(), cp.Stop()) })
		return nil
	})
	if err := end(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		code = 1
	}
	os.Exit(code)
}

// check is nil if the stories can run: on a node here, or on the cluster that the environment names, with its image.
func check(ctx context.Context) error {
	if os.Getenv(controlplane.ExistingVariable) == "" {
		return node.Check()
	}
	cp, err := controlplane.Start(ctx, Options{})
	if err != nil {
		return err
	}
	c, err := cp.Clientset()
	if err != nil {
		return err
	}
	return node.CheckCluster(ctx, c, os.Getenv("IMAGE"))
}
