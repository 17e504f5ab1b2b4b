package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// isPackage matches a line of go build -v that names what it compiles.
var isPackage = regexp.MustCompile(`^[^\s#]+$`)

// build builds programs from Go modules, all by one command, so that what they share is compiled
// once and both cores have work to the end.
func (f *finder) build(ctx context.Context, version string, missing []*made) (err error) {
	if len(missing) == 0 {
		return nil
	}
	f.announce(missing)
	part, err := os.MkdirTemp(f.store(), ".building-")
	if err != nil {
		return fmt.Errorf("folder to build into: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(part)) }()
	var packages []string
	for _, m := range missing {
		packages = append(packages, m.pkg)
	}
	total, err := f.stale(ctx, packages)
	if err != nil {
		return err
	}
	if err := f.compile(ctx, part, version, packages, total); err != nil {
		return err
	}
	for _, m := range missing {
		if err := install(filepath.Join(part, executable(m.pkg)), m.built); err != nil {
			return err
		}
	}
	return nil
}

// announce says before anything starts what happens, how long it takes, and what to do instead.
func (f *finder) announce(missing []*made) {
	var names []string
	for _, m := range missing {
		names = append(names, m.name)
	}
	f.tellf("building %s for %s from Go modules, once, into %s (about ten minutes on two cores for all, one for etcd or kwok alone)", strings.Join(names, ", "), f.platform, f.cache)
	if f.platform.os != "linux" {
		f.tellf("  Kubernetes publishes no API server for %s. To use a cluster that you have (kind, k3d, minikube) instead, interrupt this, and run:\n"+
			"  make build && bin/spillway demo --kubeconfig ~/.kube/config", f.platform)
	}
}

// stale returns how many packages must be compiled.
func (f *finder) stale(ctx context.Context, packages []string) (int, error) {
	out, err := f.goCommand(ctx, append([]string{"list", "-trimpath", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"}, packages...)...).Output()
	if err != nil {
		return 0, fmt.Errorf("packages of the control plane: %w", err)
	}
	return bytes.Count(out, []byte("\n")), nil
}

// compile compiles the packages into a folder, and tells how far it is.
func (f *finder) compile(ctx context.Context, into, version string, packages []string, total int) error {
	cmd := f.goCommand(ctx, append([]string{"build", "-v", "-trimpath", "-ldflags", linkerFlags(version), "-o", into + string(filepath.Separator)}, packages...)...)
	output, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("build the control plane: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("build the control plane: %w", err)
	}
	said := f.follow(output, total)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("build the control plane: %w\n%s", err, said)
	}
	return nil
}

// follow tells of each package as one more of all, and returns what else the compiler says.
func (f *finder) follow(output io.Reader, total int) string {
	var said strings.Builder
	done, started, told := 0, time.Now(), time.Now() //nolint:forbidigo // it measures a real build
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if !isPackage.MatchString(lines.Text()) {
			_, _ = fmt.Fprintln(&said, lines.Text())
			continue
		}
		done++
		if since := time.Since(told); since >= tellEach { //nolint:forbidigo // the same
			told = told.Add(since)
			f.tellf("  %d of %d packages, %.0f s", done, max(done, total), time.Since(started).Seconds()) //nolint:forbidigo // the same
		}
	}
	return said.String()
}

func (f *finder) goCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, f.golang, args...) //nolint:gosec // the compiler
	cmd.Dir, cmd.Env = f.module, append(append(os.Environ(), "CGO_ENABLED=0"), f.env...)
	return cmd
}

// linkerFlags say the version of Kubernetes: clients reject a server whose version they cannot read.
func linkerFlags(version string) string {
	const variable = "-X k8s.io/component-base/version."
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	return "-s -w " + variable + "gitVersion=" + version + " " + variable + "gitMajor=" + major + " " + variable + "gitMinor=" + minor
}

var isMajor = regexp.MustCompile(`^v[0-9]+$`)

// executable is the name that go build gives to the program of a package.
func executable(pkg string) string {
	if isMajor.MatchString(path.Base(pkg)) {
		return path.Base(path.Dir(pkg))
	}
	return path.Base(pkg)
}
