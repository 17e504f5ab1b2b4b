package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	isRelease = regexp.MustCompile(`^v?1(\.[0-9]+){2}$`)
	// isStaged matches what points at a folder of the repository of Kubernetes. The same code is
	// published with a version of its own, 0.30.14 for 1.30.14.
	isStaged = regexp.MustCompile(`=> \./staging/src/(\S+)`)
	isMain   = regexp.MustCompile(`(?m)^module .*$`)
)

// setKubernetes has the API server and its controllers be of another version. It is an error if that is none.
func (f *finder) setKubernetes(version string) error {
	if version != "" && !isRelease.MatchString(version) {
		return fmt.Errorf("--kubernetes=%s: must be a released version, such as 1.30.14", version)
	}
	if version != "" {
		f.kubernetes = "v" + strings.TrimPrefix(version, "v")
	}
	return nil
}

// isOther reports whether a program is of the other version. No test depends on that of kubectl.
func (f *finder) isOther(p program) bool {
	return f.kubernetes != "" && p.project == kubernetes && p.name != "kubectl"
}

// buildOthers builds the programs of the other version in a module of its own, whose versions are
// those that Kubernetes was released with. What the compiler keeps of it is needed once, and
// takes gigabytes; so it is removed.
func (f *finder) buildOthers(ctx context.Context, missing []*made) (err error) {
	missing = slices.DeleteFunc(slices.Clone(missing), func(m *made) bool { return !f.isOther(m.program) })
	if len(missing) == 0 {
		return nil
	}
	folder, err := os.MkdirTemp(f.store(), ".building-module-")
	if err != nil {
		return fmt.Errorf("folder of the module to build from: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	of := &finder{
		module: folder, cache: f.cache, platform: f.platform, progress: f.progress, golang: f.golang,
		env: []string{"GOFLAGS=-buildvcs=false -mod=mod", "GOCACHE=" + filepath.Join(folder, "cache")},
	}
	if err := of.writeModule(ctx, f.kubernetes); err != nil {
		return err
	}
	return of.build(ctx, f.kubernetes, missing)
}

// writeModule makes a module of that of Kubernetes.
func (f *finder) writeModule(ctx context.Context, version string) error {
	out, err := f.goCommand(ctx, "mod", "download", "-json", "k8s.io/kubernetes@"+version).Output()
	if err != nil {
		return fmt.Errorf("module of Kubernetes %s: %w\n%s", version, err, out)
	}
	var module struct {
		Dir string `json:"Dir"`
	}
	if err := json.Unmarshal(out, &module); err != nil {
		return fmt.Errorf("module of Kubernetes %s: %w", version, err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		raw, err := os.ReadFile(filepath.Join(module.Dir, name)) //nolint:gosec // of the module
		if err != nil {
			return fmt.Errorf("module of Kubernetes %s: %w", version, err)
		}
		if name == "go.mod" {
			raw = isMain.ReplaceAll(raw, []byte("module example.test/k8s\n\nrequire k8s.io/kubernetes "+version))
			raw = isStaged.ReplaceAll(raw, []byte("=> $1 v0"+strings.TrimPrefix(version, "v1")))
		}
		if err := os.WriteFile(filepath.Join(f.module, name), raw, 0o600); err != nil { //nolint:gosec // both names stand here
			return fmt.Errorf("module to build from: %w", err)
		}
	}
	return nil
}
