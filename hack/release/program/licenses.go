package program

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// module is one that is linked into the program.
type module struct{ path, version, dir string }

// licenseFile are the names of files that must go with the program.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright)([._-].*)?$`)

// Licenses is one text with the licenses of everything that is linked into the program of
// a platform, Go's own library included. It is an error if a module has none.
func (b Build) Licenses(ctx context.Context) ([]byte, error) {
	modules, err := b.linked(ctx)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "Spillway %s is made from the following modules.\n", b.Source.Version)
	for _, m := range modules {
		if err := m.writeLicenses(&text); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

// linked are the modules of all packages of the program, in order.
func (b Build) linked(ctx context.Context) ([]module, error) {
	format := `{{with .Module}}{{if not .Main}}{{.Path}}|{{.Version}}|{{.Dir}}{{end}}{{end}}`
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-f", format, Package)
	cmd.Dir, cmd.Env = b.Source.Root, b.environment()
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the modules of the program: %w", err)
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return nil, fmt.Errorf("find Go: %w", err)
	}
	toolchain := strings.Fields(string(root))
	lines := strings.Fields(string(out))
	slices.Sort(lines)
	modules := []module{{path: "std", version: toolchain[1], dir: toolchain[0]}}
	for _, line := range slices.Compact(lines) {
		if parts := strings.Split(line, "|"); len(parts) == 3 { //nolint:mnd // path, version and folder
			modules = append(modules, module{parts[0], parts[1], parts[2]})
		}
	}
	return modules, nil
}

func (m module) writeLicenses(w *bytes.Buffer) error {
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		return fmt.Errorf("look for the license of %s: %w", m.path, err)
	}
	found := false
	for _, entry := range entries {
		if entry.IsDir() || !licenseFile.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.dir, entry.Name()))
		if err != nil {
			return fmt.Errorf("read the license of %s: %w", m.path, err)
		}
		found = true
		fmt.Fprintf(w, "\n%s\n%s %s: %s\n\n%s\n", strings.Repeat("=", 72), m.path, m.version, entry.Name(), bytes.TrimSpace(text))
	}
	if !found {
		return fmt.Errorf("module %s %s has no license file; it cannot be part of a release", m.path, m.version)
	}
	return nil
}
