package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// find returns the folder of the control plane: one that is in the cache, or one that is
// fetched, or else one that is built.
func (f *finder) find(ctx context.Context, insist bool) (string, error) {
	if insist {
		return f.build(ctx)
	}
	versions, err := f.versions()
	if err != nil {
		return "", err
	}
	built, err := f.built(versions)
	if err != nil {
		return "", err
	}
	if isFolder(built) {
		return built, nil
	}
	folder, err := f.fetched(ctx, versions)
	if err == nil {
		return folder, nil
	}
	if ctx.Err() != nil {
		return "", err
	}
	f.tellf("%v; building from Go modules instead", err)
	return f.build(ctx)
}

// fetched returns the folder with the downloads, which are fetched unless that was done already.
func (f *finder) fetched(ctx context.Context, versions map[string]string) (string, error) {
	pins, err := f.pins(versions)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, p := range pins {
		_, _ = fmt.Fprintln(sum, p.name, p.version, p.sha256)
	}
	folder := filepath.Join(f.cache, fmt.Sprintf("%s-%s-%s-fetched-%.12s", versions[kubernetes], f.platform.os, f.platform.arch, hex.EncodeToString(sum.Sum(nil))))
	if isFolder(folder) {
		return folder, nil
	}
	if err := os.MkdirAll(f.cache, 0o755); err != nil { //nolint:gosec // programs are for everybody
		return "", fmt.Errorf("folder of the cache: %w", err)
	}
	// It is fetched beside the folder, which appears only when it is complete.
	part, err := os.MkdirTemp(f.cache, ".fetching-")
	if err != nil {
		return "", fmt.Errorf("folder to fetch into: %w", err)
	}
	defer func() { _ = os.RemoveAll(part) }()
	f.tellf("fetching the control plane, Kubernetes %s, once", versions[kubernetes])
	if err := f.fetchAll(ctx, part, pins); err != nil {
		return "", err
	}
	if err := os.Chmod(part, 0o755); err != nil { //nolint:gosec // the same
		return "", fmt.Errorf("permissions of %s: %w", part, err)
	}
	if err := os.Rename(part, folder); err != nil && !isFolder(folder) { // another process may have been faster
		return "", fmt.Errorf("move what was fetched: %w", err)
	}
	return folder, nil
}

// versions are those of the modules in hack/k8s.
func (f *finder) versions() (map[string]string, error) {
	raw, err := os.ReadFile(filepath.Join(f.module, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("versions of the control plane: %w", err)
	}
	modules := map[string]string{"k8s.io/kubernetes": kubernetes, "go.etcd.io/etcd/server/v3": etcd, "sigs.k8s.io/kwok": kwok}
	versions := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) >= 2 && modules[fields[0]] != "" && strings.HasPrefix(fields[1], "v") {
			versions[modules[fields[0]]] = fields[1]
		}
	}
	if len(versions) != len(modules) {
		return nil, fmt.Errorf("hack/k8s/go.mod does not say all versions of the control plane: %v", versions)
	}
	return versions, nil
}

// built is the folder into which hack/k8s/build.sh builds: its name has the digest of all
// that says what is built.
func (f *finder) built(versions map[string]string) (string, error) {
	sum := sha256.New()
	for _, name := range []string{"go.mod", "go.sum", "build.sh"} {
		raw, err := os.ReadFile(filepath.Join(f.module, name)) //nolint:gosec // one of three
		if err != nil {
			return "", fmt.Errorf("what the control plane is built from: %w", err)
		}
		_, _ = sum.Write(raw)
	}
	return filepath.Join(f.cache, fmt.Sprintf("%s-%s-%s-%.12s", versions[kubernetes], f.platform.os, f.platform.arch, hex.EncodeToString(sum.Sum(nil)))), nil
}

func (f *finder) build(ctx context.Context) (string, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(f.module, "build.sh")) //nolint:gosec // a file of the checkout
	cmd.Stdout, cmd.Stderr = &out, f.progress
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build the control plane: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	folder := lines[len(lines)-1]
	if !isFolder(folder) {
		return "", errors.New("hack/k8s/build.sh has printed no folder")
	}
	return folder, nil
}

func (f *finder) tellf(format string, args ...any) {
	_, _ = fmt.Fprintf(f.progress, format+"\n", args...)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
