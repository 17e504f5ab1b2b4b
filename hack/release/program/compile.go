// Package program compiles the program and packs it: the same bytes from the same commit
// and Go, wherever the repository is.
package program

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/hack/release/source"
)

// Package is what is compiled.
const Package = "./cmd/spillway"

// Platform is an operating system and an architecture.
type Platform struct{ OS, Arch string }

// String is such as linux/amd64.
func (p Platform) String() string { return p.OS + "/" + p.Arch }

// File is the name of the program.
func (p Platform) File() string {
	if p.OS == "windows" {
		return "spillway.exe"
	}
	return "spillway"
}

// Platforms are those of a release. The first two are those of the image.
func Platforms() []Platform {
	return []Platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"}}
}

// ParsePlatforms reads a list such as linux/amd64,linux/arm64.
func ParsePlatforms(list []string) ([]Platform, error) {
	known := Platforms()
	var parsed []Platform
	for _, text := range list {
		i := slices.IndexFunc(known, func(p Platform) bool { return p.String() == text })
		if i < 0 {
			return nil, fmt.Errorf("platform %q: must be one of %v", text, known)
		}
		parsed = append(parsed, known[i])
	}
	return parsed, nil
}

// Build says how to compile.
type Build struct {
	Source   source.Source
	Platform Platform
	// FIPS uses the module of Go that is certified by FIPS 140-3, and switches it on.
	FIPS bool
	// Digest is that of the image of this version, where it is known: then the program
	// installs that image.
	Digest string
}

// variables are the ones that the linker sets.
const variables = "github.com/spillway-dev/spillway/internal/cli/command."

// Compile writes the program to a file.
func (b Build) Compile(ctx context.Context, file string) error {
	stamps := map[string]string{
		"Version": b.Source.Version, "Commit": b.Source.Commit, "Date": b.Source.Date.UTC().Format(time.RFC3339), "ImageDigest": b.Digest,
	}
	flags := []string{"-s", "-w", "-buildid="}
	for _, name := range []string{"Version", "Commit", "Date", "ImageDigest"} {
		flags = append(flags, "-X", variables+name+"="+stamps[name])
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", strings.Join(flags, " "), "-o", file, Package) //nolint:gosec // without a shell
	cmd.Dir, cmd.Env = b.Source.Root, b.environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile for %s: %w\n%s", b.Platform, err, out)
	}
	return nil
}

// environment leaves out what would make one machine's program differ from another's.
func (b Build) environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"GOFLAGS", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GODEBUG", "GOFIPS140", "CGO_ENABLED"}, name)
	})
	fips := "off"
	if b.FIPS {
		fips = "certified"
	}
	return append(env, "CGO_ENABLED=0", "GOWORK=off", "GOOS="+b.Platform.OS, "GOARCH="+b.Platform.Arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140="+fips)
}
