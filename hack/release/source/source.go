// Package source says what a release is made of: a version, and a commit without changes
// beside it.
package source

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// Source is what a release is made from.
type Source struct {
	// Root is the folder of the repository.
	Root string
	// Version is that of the release, such as v0.1.0.
	Version string
	// Commit is the hash of the commit.
	Commit string
	// Date is that of the commit, and the only time that a release knows: so the same
	// commit makes the same files.
	Date time.Time
}

// Read reads the commit of a repository. It is an error if the version is no semantic
// version, or if there are changes that the commit does not have.
func Read(ctx context.Context, root, version string) (Source, error) {
	if err := CheckVersion(version); err != nil {
		return Source{}, err
	}
	changes, err := git(ctx, root, "status", "--porcelain")
	if err != nil {
		return Source{}, err
	}
	if changes != "" {
		return Source{}, fmt.Errorf("the work tree has changes that are not committed, such as %q; commit or stash them: a release is what a commit holds",
			strings.TrimSpace(strings.SplitN(changes, "\n", 2)[0])) //nolint:mnd // the first line and the rest
	}
	commit, err := git(ctx, root, "rev-parse", "HEAD")
	if err != nil {
		return Source{}, err
	}
	date, err := git(ctx, root, "show", "-s", "--format=%cI", "HEAD")
	if err != nil {
		return Source{}, err
	}
	at, err := time.Parse(time.RFC3339, date)
	if err != nil {
		return Source{}, fmt.Errorf("date of commit %s: %w", commit, err)
	}
	return Source{Root: root, Version: version, Commit: commit, Date: at.UTC()}, nil
}

// CheckVersion is an error unless a version is a complete semantic version with a v. A
// version with a plus is none that a registry can have as a tag.
func CheckVersion(version string) error {
	if !semver.IsValid(version) || semver.Canonical(version) != version {
		return fmt.Errorf("version %q: must be a semantic version such as v0.1.0 or v0.2.0-rc.1", version)
	}
	return nil
}

// Plain is the version without its v, as charts and formulas have it.
func (s Source) Plain() string { return strings.TrimPrefix(s.Version, "v") }

func git(ctx context.Context, root string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // without a shell
	cmd.Dir = root
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = errors.New(strings.TrimSpace(string(failed.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}
