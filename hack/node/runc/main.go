// Command runc hands over to the program runc-without-seccomp beside it, after it has removed the
// seccomp profile from the container that is to be created.
//
// A kubelet asks for a profile for each Pod's sandbox, whatever the Pod says. The real runc needs
// libseccomp for that, a C library whose headers few machines have, and refuses profiles if it was
// built without. The containers of the tests are our own.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	err := run(os.Args)
	_, _ = fmt.Fprintln(os.Stderr, "runc:", err)
	os.Exit(1)
}

// run returns only if it fails.
func run(args []string) error {
	if bundle := bundleOf(args[1:]); bundle != "" {
		if err := removeProfile(filepath.Join(bundle, "config.json")); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the real runc: %w", err)
	}
	runc := filepath.Join(filepath.Dir(self), "runc-without-seccomp")
	return fmt.Errorf("run %s: %w", runc, syscall.Exec(runc, args, os.Environ())) //nolint:gosec // it was built with this
}

// bundleOf is the folder of the container that is created, empty if none is.
func bundleOf(args []string) string {
	if !slices.Contains(args, "create") && !slices.Contains(args, "run") {
		return ""
	}
	for i, arg := range args {
		if (arg == "--bundle" || arg == "-b") && i+1 < len(args) {
			return args[i+1]
		}
		if value, ok := strings.CutPrefix(arg, "--bundle="); ok {
			return value
		}
	}
	return ""
}

func removeProfile(file string) error {
	raw, err := os.ReadFile(file) //nolint:gosec // containerd names it
	if err != nil {
		return fmt.Errorf("read the container: %w", err)
	}
	var all, linux map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return fmt.Errorf("read the container: %w", err)
	}
	if err := json.Unmarshal(all["linux"], &linux); err != nil {
		return fmt.Errorf("read the container: %w", err)
	}
	delete(linux, "seccomp")
	if all["linux"], err = json.Marshal(linux); err != nil {
		return fmt.Errorf("write the container: %w", err)
	}
	if raw, err = json.Marshal(all); err != nil {
		return fmt.Errorf("write the container: %w", err)
	}
	if err := os.WriteFile(file, raw, 0o600); err != nil { //nolint:gosec // containerd names it
		return fmt.Errorf("write the container: %w", err)
	}
	return nil
}
