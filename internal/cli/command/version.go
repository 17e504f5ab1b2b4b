package command

import (
	"runtime/debug"
)

// Version is set by the linker when a release is built.
var Version = "" //nolint:gochecknoglobals // set by the linker

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
