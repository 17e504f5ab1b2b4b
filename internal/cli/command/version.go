package command

import (
	"runtime/debug"
	"strings"

	"github.com/spillway-dev/spillway/internal/manifests"
)

// What the linker sets when a release is built.
var (
	Version = "" //nolint:gochecknoglobals // set by the linker
	// Commit is the hash of the commit, and Date when it was made.
	Commit = "" //nolint:gochecknoglobals // the same
	Date   = "" //nolint:gochecknoglobals // the same
	// ImageDigest is that of the image of this version. The program inside the image has
	// none, because the digest depends on it.
	ImageDigest = "" //nolint:gochecknoglobals // the same
)

// CurrentVersion returns the release, or that of the module, or "dev".
func CurrentVersion() string {
	if Version != "" {
		return Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// CurrentCommit returns the commit and its date, as far as they are known.
func CurrentCommit() (commit, date string) {
	if Commit != "" {
		return Commit, Date
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", ""
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			commit = setting.Value
		case "vcs.time":
			date = setting.Value
		}
	}
	return commit, date
}

// CurrentImage is the image of this version, by its digest where that is known.
func CurrentImage() string {
	image := manifests.Repository + ":" + strings.ReplaceAll(CurrentVersion(), "+", "-") // tags have no plus
	if ImageDigest != "" {
		image += "@" + ImageDigest
	}
	return image
}

// IsRelease is true of a program that was built as a release, which has an image.
func IsRelease() bool { return Version != "" }
