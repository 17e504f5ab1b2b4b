package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// find returns the folder of the control plane. Each program has a file of its own in the
// cache, named for what it was made from; the folder links those that belong together. So
// a program that changes is made alone, and two runs at a time make nothing twice.
func (f *finder) find(ctx context.Context) (string, error) {
	all, err := f.programs()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(f.store(), 0o755); err != nil { //nolint:gosec // programs are for everybody
		return "", fmt.Errorf("folder of the cache: %w", err)
	}
	if missing(all) != nil {
		if err := f.makeMissing(ctx, all); err != nil {
			return "", err
		}
	}
	return f.link(all)
}

// made is a program of this checkout, and the files in the cache that are it.
type made struct {
	program
	version string
	// pin is its download, nil if none is pinned.
	pin *pin
	// fetched is the download in the cache, empty without a pin; built is what is made from
	// Go modules.
	fetched, built string
}

// file is the one that is used: a download, or else what was built. Empty if there is none yet.
func (m *made) file() string {
	for _, name := range []string{m.fetched, m.built} {
		if _, err := os.Stat(name); name != "" && err == nil {
			return name
		}
	}
	return ""
}

// missing returns those of which the cache has no file.
func missing(all []*made) (none []*made) {
	for _, m := range all {
		if m.file() == "" {
			none = append(none, m)
		}
	}
	return none
}

// makeMissing fetches what can be fetched, and builds the others.
func (f *finder) makeMissing(ctx context.Context, all []*made) error {
	unlock, err := f.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.fetchAll(ctx, missing(all)); err != nil {
		return err
	}
	if err := f.buildOthers(ctx, missing(all)); err != nil {
		return err
	}
	own := slices.IndexFunc(all, func(m *made) bool { return m.project == kubernetes && !f.isOther(m.program) })
	return f.build(ctx, all[own].version, missing(all)) // another run may have made them while this one waited
}

// programs are those of the control plane, as this checkout has them.
func (f *finder) programs() ([]*made, error) {
	raw, err := os.ReadFile(filepath.Join(f.module, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("versions of the control plane: %w", err)
	}
	sums, err := os.ReadFile(filepath.Join(f.module, "go.sum"))
	if err != nil {
		return nil, fmt.Errorf("what the control plane is built from: %w", err)
	}
	pins, err := f.pins()
	if err != nil {
		return nil, err
	}
	modules := digest(append(raw, sums...))
	var all []*made
	for _, p := range programs() {
		m := &made{program: p, version: requiredVersion(raw, p.module)}
		if m.version == "" {
			return nil, fmt.Errorf("hack/k8s/go.mod does not require %s", p.module)
		}
		if f.isOther(p) {
			m.version = f.kubernetes
			m.built = f.stored(m, "built-from-module")
			all = append(all, m)
			continue
		}
		m.built = f.stored(m, "built-"+modules)
		if m.pin = pinOf(pins, m, f.platform); m.pin != nil && !f.insist {
			m.fetched = f.stored(m, m.pin.sha256[:12])
		}
		all = append(all, m)
	}
	return all, nil
}

// versionOf is the version of the programs of a project.
func versionOf(all []*made, project string) string {
	i := slices.IndexFunc(all, func(m *made) bool { return m.project == project })
	return all[i].version
}

// requiredVersion is the version of a module that a go.mod requires, empty if it does not.
func requiredVersion(goMod []byte, module string) string {
	for line := range bytes.Lines(goMod) {
		fields := strings.Fields(string(line))
		if len(fields) >= 2 && fields[0] == module && strings.HasPrefix(fields[1], "v") {
			return fields[1]
		}
	}
	return ""
}

func (f *finder) store() string { return filepath.Join(f.cache, "programs") }

func (f *finder) stored(m *made, madeFrom string) string {
	return filepath.Join(f.store(), fmt.Sprintf("%s-%s-%s-%s-%s", m.name, m.version, f.platform.os, f.platform.arch, madeFrom))
}

// link returns the folder that has the programs by their names. It appears only when it is complete.
func (f *finder) link(all []*made) (string, error) {
	var names bytes.Buffer
	for _, m := range all {
		_, _ = fmt.Fprintln(&names, filepath.Base(m.file()))
	}
	folder := filepath.Join(f.cache, fmt.Sprintf("%s-%s-%s-%s", versionOf(all, kubernetes), f.platform.os, f.platform.arch, digest(names.Bytes())))
	if isFolder(folder) {
		return folder, nil
	}
	part, err := os.MkdirTemp(f.cache, ".linking-")
	if err != nil {
		return "", fmt.Errorf("folder of the control plane: %w", err)
	}
	defer func() { _ = os.RemoveAll(part) }()
	for _, m := range all {
		if err := os.Link(m.file(), filepath.Join(part, m.name)); err != nil {
			return "", fmt.Errorf("folder of the control plane: %w", err)
		}
	}
	if err := os.Chmod(part, 0o755); err != nil { //nolint:gosec // programs are for everybody
		return "", fmt.Errorf("permissions of %s: %w", part, err)
	}
	if err := os.Rename(part, folder); err != nil && !isFolder(folder) { // another run may have been faster
		return "", fmt.Errorf("folder of the control plane: %w", err)
	}
	return folder, nil
}

// lock waits until no other process makes programs.
func (f *finder) lock() (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(f.store(), ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock of the cache: %w", err)
	}
	take := func(how int) error { return syscall.Flock(int(file.Fd()), how) }
	if err = take(syscall.LOCK_EX | syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		f.tellf("waiting for another process that makes the control plane")
		err = take(syscall.LOCK_EX)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock of the cache: %w", err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}

func (f *finder) tellf(format string, args ...any) {
	f.telling.Lock()
	defer f.telling.Unlock()
	_, _ = fmt.Fprintf(f.progress, format+"\n", args...)
}

func digest(content []byte) string {
	return fmt.Sprintf("%.6x", sha256.Sum256(content))
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// install moves a complete program to its place in the cache.
func install(from, to string) error {
	if err := os.Chmod(from, 0o755); err != nil { //nolint:gosec // a program
		return fmt.Errorf("permissions of a program: %w", err)
	}
	if err := os.Rename(from, to); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("place a program: %w", err)
	}
	return nil
}
