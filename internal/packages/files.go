package packages

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// What a package may have at most. An OperatorVersion has all templates in it, and etcd takes
// 1.5 MiB for an object.
const (
	MostFiles   = 1000
	MostBytes   = 4 << 20
	mostEntries = 5 * MostFiles
)

// The files of a package.
const (
	operatorFile = "operator.yaml"
	paramsFile   = "params.yaml"
	templatesDir = "templates/"
)

// files are the contents of a package, by their path in it, with slashes.
type files map[string][]byte

// Load reads the package in a folder or an archive. The error names the file that is wrong,
// and how to fix it.
func Load(from string) (*Package, error) {
	info, err := os.Stat(from)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w; give the folder or the archive (.tgz) of a package", from, cause(err))
	}
	if info.IsDir() {
		root, err := os.OpenRoot(from)
		if err != nil {
			return nil, fmt.Errorf("%s cannot be read: %w", from, cause(err))
		}
		defer func() { _ = root.Close() }()
		f, err := fromFolder(root.FS())
		if err != nil {
			return nil, about(from, err)
		}
		if below := folderIn(root.FS()); f[operatorFile] == nil && below != "" {
			return nil, about(from, refuse("the package is in "+filepath.Join(from, below), "has no %s", operatorFile))
		}
		return newPackage(from, f)
	}
	archive, err := os.Open(from) //nolint:gosec // the user names what is read
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", from, cause(err))
	}
	defer func() { _ = archive.Close() }()
	return Read(from, archive)
}

// Read reads the package in an archive. from is what messages call it.
func Read(from string, archive io.Reader) (*Package, error) {
	f, err := fromArchive(archive)
	if err != nil {
		return nil, about(from, err)
	}
	return newPackage(from, f)
}

// cause is why a file cannot be read, without its path.
func cause(err error) error {
	if named, ok := errors.AsType[*fs.PathError](err); ok {
		return named.Err
	}
	return err
}

// fromFolder reads what belongs to a package, and nothing else that is in the folder, nor
// what a link in it leads to outside.
func fromFolder(folder fs.FS) (files, error) {
	found := files{}
	var size int64
	entries := 0
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("%s cannot be read: %w", name, cause(err))
		case entry.IsDir() && name != "." && !isPart(name+"/"):
			return fs.SkipDir
		case !entry.IsDir() && !isPart(name):
			return nil
		}
		if entries++; entries > mostEntries {
			return refuse(removeOthers, "has more than %d entries", mostEntries)
		}
		if entry.IsDir() {
			return nil
		}
		return found.read(folder, name, &size)
	})
	return found, err //nolint:wrapcheck // of the function above
}

// folderIn is the first folder below that has an operator.yaml, "" if none has.
func folderIn(folder fs.FS) string {
	found, _ := fs.Glob(folder, "*/"+operatorFile) // the pattern is right
	if len(found) == 0 {
		return ""
	}
	return path.Dir(found[0])
}

// read takes a file of a folder, and refuses what is none: a pipe or a device would never end.
func (f files) read(folder fs.FS, name string, size *int64) error {
	info, err := fs.Stat(folder, name)
	if err != nil {
		return refuse("a link must lead to a file of the package", "%s cannot be read: %v", name, cause(err))
	}
	if !info.Mode().IsRegular() {
		return refuse("a package has files only", "%s is no file", name)
	}
	file, err := folder.Open(name)
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", name, cause(err))
	}
	defer func() { _ = file.Close() }()
	return f.add(name, file, size)
}

// isPart is true of what belongs to a package; a folder ends in a slash.
func isPart(name string) bool {
	hidden := strings.HasPrefix(path.Base(name), ".") && name != "."
	return !hidden && (name == operatorFile || name == paramsFile || strings.HasPrefix(name, templatesDir))
}

// add reads a file, if the package is not too large with it.
func (f files) add(name string, content io.Reader, size *int64) error {
	if len(f) == MostFiles {
		return refuse(removeOthers, "has more than %d files", MostFiles)
	}
	raw, err := io.ReadAll(io.LimitReader(content, MostBytes-*size+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if *size += int64(len(raw)); *size > MostBytes {
		return refuse(removeOthers, "has more than %d MiB of files", MostBytes>>20)
	}
	f[name] = raw
	return nil
}

// fileIn names a file of a package, which may be at an address.
func fileIn(from, name string) string {
	if strings.Contains(from, "://") {
		return from + "/" + name
	}
	return filepath.Join(from, name)
}

// IsPackage is true of a folder or an archive that has a package: of any archive, of a folder
// whose operator.yaml is no manifest, and of one that has the other files of a package.
func IsPackage(at string) bool {
	if strings.HasSuffix(at, ".tgz") || strings.HasSuffix(at, ".tar.gz") {
		return true
	}
	raw, err := os.ReadFile(filepath.Join(at, operatorFile)) //nolint:gosec // the user names what is read
	if errors.Is(err, fs.ErrNotExist) {
		return lacksOnlyOperator(at)
	}
	return err == nil && (isOperator(raw) || wasOperator(raw))
}

// lacksOnlyOperator is true of a folder that has parameters and templates of a package.
func lacksOnlyOperator(at string) bool {
	raw, err := os.ReadFile(filepath.Join(at, paramsFile)) //nolint:gosec // the user names what is read
	if err != nil {
		return false
	}
	info, err := os.Stat(filepath.Join(at, templatesDir))
	return err == nil && info.IsDir() && nodeAt(raw, "parameters") != nil
}
