//go:build unix

// Command test runs go test with one control plane for all packages. It is started when the
// first test uses it.
//
//	go run ./hack/test FLAGS OF GO TEST -- PACKAGES
//
// What failed is then run five times alone, and reported as flaky or broken; the run has
// failed either way. With "stress TIMES" before the flags, one test runs many times while all
// processors are busy:
//
//	go run ./hack/test stress 200 -run TestName -- ./internal/config
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"github.com/spillway-dev/spillway/internal/lab/controlplane"
)

// nodes are as many as any package uses.
const nodes = 3

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // the first of this program
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	times := 0
	if len(args) > 1 && args[0] == "stress" {
		if times, err = strconv.Atoi(args[1]); err != nil {
			return fmt.Errorf("stress %s: must be a number", args[1])
		}
		args = args[2:]
	}
	end := slices.Index(args, "--")
	if end < 0 {
		return errors.New("usage: test FLAGS OF GO TEST -- PACKAGES")
	}
	r := runner{flags: args[:end], packages: args[end+1:]}
	stop, err := r.share(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if times > 0 {
		return r.stress(ctx, times)
	}
	return r.test(ctx)
}

// runner runs tests.
type runner struct {
	// flags are those of go test.
	flags, packages []string
	// env is the environment of the tests.
	env []string
}

// share hands out a control plane, which is started once the first process asks for it.
func (r *runner) share(ctx context.Context) (stop func() error, err error) {
	socket, folder, err := listen(ctx)
	if err != nil {
		return nil, err
	}
	var started *controlplane.ControlPlane
	once := sync.OnceValues(func() (*controlplane.ControlPlane, error) {
		var err error
		started, err = controlplane.Start(ctx, controlplane.Options{Nodes: nodes, Progress: os.Stderr})
		return started, err
	})
	var handing sync.WaitGroup
	handing.Go(func() { controlplane.HandOut(socket, once) })
	r.env = append(os.Environ(), controlplane.SharedVariable+"="+socket.Addr().String())
	return func() error {
		err := socket.Close()
		handing.Wait()
		if started != nil {
			err = errors.Join(err, started.Stop())
		}
		return errors.Join(err, os.RemoveAll(folder))
	}, nil
}

// listen listens at the same path in every run, so that go test remembers results. A second
// run at the same time has a folder of its own, which is to be removed.
func listen(ctx context.Context) (socket net.Listener, folder string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, "", fmt.Errorf("folder of the cache: %w", err)
	}
	in := filepath.Join(cache, "spillway", "test")
	if err := os.MkdirAll(in, 0o700); err != nil {
		return nil, "", fmt.Errorf("folder of the cache: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(in, "lock"), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // it is open, and so locked, until this program ends
	if err != nil {
		return nil, "", fmt.Errorf("lock: %w", err)
	}
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		if folder, err = os.MkdirTemp("", "spillway-test-"); err != nil {
			return nil, "", fmt.Errorf("folder of the run: %w", err)
		}
		in = folder
	}
	path := filepath.Join(in, "socket")
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // that of a run that was killed
		return nil, "", fmt.Errorf("socket: %w", err)
	}
	socket, err = (&net.ListenConfig{}).Listen(ctx, "unix", path)
	return socket, folder, err //nolint:wrapcheck // it says what it listens at
}

// command runs in a process group of its own, which ends when the context does.
func (r *runner) command(ctx context.Context, out io.Writer, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // go, and tests that it has compiled
	cmd.Stdout, cmd.Stderr, cmd.Env = out, out, r.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	return cmd
}

// test runs all tests, and those that failed once more.
func (r *runner) test(ctx context.Context) error {
	var log bytes.Buffer
	cmd := r.command(ctx, io.MultiWriter(os.Stdout, &log), "go", slices.Concat([]string{"test"}, r.flags, r.packages)...)
	cmd.Stderr = os.Stderr
	err := cmd.Run()
	fmt.Println("The slowest packages:")
	for _, of := range slowest(log.String(), 10) {
		fmt.Printf("%9s  %s\n", of.seconds, of.pkg)
	}
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	if err := r.again(ctx, failures(log.String())); err != nil {
		return err
	}
	return fmt.Errorf("go test: %w", err)
}
