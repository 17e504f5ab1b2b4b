package authoring

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// scaffold is the package that a new one begins as. Words in capitals stand for what a
// [Description] says.
//
//go:embed scaffold
var scaffold embed.FS

// Description is what a new package says of itself.
type Description struct {
	Name, OperatorVersion, AppVersion, URL string
	Maintainers                            []v1beta1.Maintainer
}

// Default is how a package is described of which only the name is known.
func Default(name string) Description {
	return Description{Name: name, OperatorVersion: "0.1.0", AppVersion: "1.0"}
}

// CheckName says why a package cannot have a name.
func CheckName(name string) error {
	if len(validation.IsDNS1123Label(name)) > 0 {
		return fmt.Errorf("%q cannot be the name of a package; use lower-case letters, digits and -", name)
	}
	return nil
}

// CheckVersion says why a package cannot have a version.
func CheckVersion(version string) error {
	if _, err := semver.NewVersion(version); err != nil {
		return fmt.Errorf("%q is no semantic version; write it as 0.1.0", version)
	}
	return nil
}

// words are those of the scaffold, with what they stand for.
func (d *Description) words() *strings.Replacer {
	maintainers := " []"
	if len(d.Maintainers) > 0 {
		maintainers = ""
	}
	for _, m := range d.Maintainers {
		maintainers += "\n  - name: " + quoted(m.Name) + "\n    email: " + quoted(m.Email)
	}
	return strings.NewReplacer("NAME", d.Name, "OPERATOR_VERSION", d.OperatorVersion, "APP_VERSION", quoted(d.AppVersion), "PROJECT_URL", quoted(d.URL), "MAINTAINERS", maintainers)
}

// quoted is a text in YAML, which knows the quotes of JSON.
func quoted(text string) string {
	raw, _ := json.Marshal(text) //nolint:errchkjson // a text can always be written
	return string(raw)
}

// New writes a package that can be installed as it is, and returns the files. The directory
// must not exist yet, unless its files may be overwritten.
func New(dir string, d *Description, overwrite bool) ([]string, error) {
	if err := CheckName(d.Name); err != nil {
		return nil, err
	}
	if err := CheckVersion(d.OperatorVersion); err != nil {
		return nil, err
	}
	words := d.words()
	if _, err := os.Lstat(dir); err == nil && !overwrite {
		return nil, fmt.Errorf("%s exists; choose another directory with --dir, or replace its files with --overwrite", dir)
	}
	if err := makeDir(dir); err != nil {
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
			return makeDir(to)
		}
		raw, err := scaffold.ReadFile(at)
		if err != nil {
			return err //nolint:wrapcheck // it is in the program
		}
		written = append(written, to)
		return os.WriteFile(to, []byte(words.Replace(string(raw))), 0o644) //nolint:gosec // others may read a package
	})
	if err != nil {
		return nil, fmt.Errorf("write the package: %w", err)
	}
	return written, nil
}

// makeDir makes a directory, if there is none.
func makeDir(dir string) error {
	err := os.Mkdir(dir, 0o755) //nolint:gosec // others may read a package
	if errors.Is(err, fs.ErrExist) {
		return nil // writing into it fails if it is none
	}
	return err //nolint:wrapcheck // the caller says what it is for
}
