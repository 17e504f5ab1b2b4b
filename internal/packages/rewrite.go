package packages

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Rewrite writes other contents for files of the package to the folder that it is from: all
// of them, or none. The files are named by their path in the package.
func (p *Package) Rewrite(changed map[string][]byte) error {
	if info, err := os.Stat(p.From); err != nil || !info.IsDir() {
		return fmt.Errorf("%s is no directory, so its files cannot be changed; unpack it first", p.From)
	}
	after := maps.Clone(p.files)
	maps.Copy(after, changed)
	if _, err := newPackage(p.From, after); err != nil {
		return fmt.Errorf("the package could not be read afterwards, so nothing was changed: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		if now, err := os.ReadFile(filepath.Join(p.From, name)); err == nil && !bytes.Equal(now, p.files[name]) { //nolint:gosec // a file of the package
			return fmt.Errorf("%s was changed by another program meanwhile; nothing was changed, try again", filepath.Join(p.From, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		if err := replace(filepath.Join(p.From, name), changed[name]); err != nil {
			return err
		}
	}
	return nil
}

// File is the content of a file of the package, nil if there is none.
func (p *Package) File(name string) []byte { return p.files[name] }

// replace writes a file beside its place first, with the mode that it has, so that there is
// never half of one.
func replace(path string, content []byte) error {
	mode := os.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".spillway-")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.Write(content)
	if err := errors.Join(err, file.Chmod(mode), file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
