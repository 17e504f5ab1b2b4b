package authoring

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// scaffold is the package that a new one begins as. NAME is its name.
//
//go:embed scaffold
var scaffold embed.FS

// New writes a package that can be installed as it is, to a directory that does not exist
// yet, and returns the files.
func New(dir, name string) ([]string, error) {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return nil, fmt.Errorf("%q is no name of a package: %s", name, problems[0])
	}
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // others may read a package
		if errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("%s exists; choose another directory with --dir", dir)
		}
		return nil, fmt.Errorf("create the directory: %w", err)
	}
	var written []string
	err := fs.WalkDir(scaffold, "scaffold", func(at string, entry fs.DirEntry, err error) error {
		to := filepath.Join(dir, strings.TrimPrefix(at, "scaffold"))
		switch {
		case err != nil:
			return err
		case at == "scaffold":
			return nil
		case entry.IsDir():
			return os.Mkdir(to, 0o755) //nolint:gosec // others may read a package
		}
		raw, err := scaffold.ReadFile(at)
		if err != nil {
			return err //nolint:wrapcheck // it is in the program
		}
		written = append(written, to)
		return os.WriteFile(to, []byte(strings.ReplaceAll(string(raw), "NAME", name)), 0o644) //nolint:gosec // others may read a package
	})
	if err != nil {
		return nil, fmt.Errorf("write the package: %w", err)
	}
	return written, nil
}
