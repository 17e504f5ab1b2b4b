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
	"crypto/sha256"
	"encoding/hex"
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
	"strings"
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
	r := runner{flags: args[:end], packages: args[end+1:], out: os.Stdout}
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
	out io.Writer
}

// share hands out a control plane, which is started once the first process asks for it.
func (r *runner) share(ctx context.Context) (stop func() error, err error) {
	socket, release, err := listen(ctx, r.flags)
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
		return errors.Join(err, release())
	}, nil
}

// listen listens at the same path in every run with these flags, so that go test remembers
// results. A second one at the same time listens elsewhere.
func listen(ctx context.Context, flags []string) (socket net.Listener, release func() error, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, nil, fmt.Errorf("folder of the cache: %w", err)
	}
	sum := sha256.Sum256([]byte(strings.Join(flags, " ")))
	folder := filepath.Join(cache, "spillway", "test", hex.EncodeToString(sum[:6]))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, nil, fmt.Errorf("folder of the cache: %w", err)
	}
	lock, err := os.Create(filepath.Join(folder, "lock")) //nolint:gosec // in the cache
	if err != nil {
		return nil, nil, fmt.Errorf("lock: %w", err)
	}
	release = lock.Close
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		if folder, err = os.MkdirTemp("", "spillway-test-"); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("folder of the run: %w", err), lock.Close())
		}
		release = func() error { return errors.Join(lock.Close(), os.RemoveAll(folder)) }
	}
	path := filepath.Join(folder, "socket")
	_ = os.Remove(path) // that of a run that was killed
	socket, err = (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("hand out the control plane: %w", err), release())
	}
	return socket, release, nil
}

// command runs in a process group of its own, which ends when the context does.
func (r *runner) command(ctx context.Context, out io.Writer, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // go, and tests that it has compiled
	cmd.Stdout, cmd.Stderr, cmd.Env = out, out, r.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	return cmd
}

func (r *runner) printf(format string, args ...any) { _, _ = fmt.Fprintf(r.out, format, args...) }

// test runs all tests, and those that failed once more.
func (r *runner) test(ctx context.Context) error {
	var log bytes.Buffer
	cmd := r.command(ctx, io.MultiWriter(r.out, &log), "go", slices.Concat([]string{"test"}, r.flags, r.packages)...)
	err := cmd.Run()
	r.printf("The slowest packages:\n")
	for _, of := range slowest(log.String(), 10) {
		r.printf("%9s  %s\n", of.seconds, of.pkg)
	}
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	if err := r.again(ctx, failures(log.String())); err != nil {
		return err
	}
	return fmt.Errorf("go test: %w", err)
}
