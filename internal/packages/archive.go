package packages

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// mostArchive bounds what is unpacked, also of files that do not belong to a package.
const mostArchive = 16 * MostBytes

// fromArchive reads a .tgz as it comes. The package may stand in a folder of the archive.
func fromArchive(r io.Reader) (files, error) {
	unzipped, err := gzip.NewReader(r)
	switch {
	case errors.Is(err, io.EOF):
		return nil, refuse(fetchAgain, "is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errEndsEarly
	case err != nil:
		return nil, refuse("name a directory or a .tgz file", "is no archive of a package: it is not compressed with gzip")
	}
	limited := &io.LimitedReader{R: unzipped, N: mostArchive}
	archive, found := tar.NewReader(limited), files{}
	var size int64
	for n := 0; ; n++ {
		entry, err := archive.Next()
		switch {
		case limited.N <= 0 || n >= mostEntries:
			return nil, refuse(removeOthers, "has more than %d MiB, or more than %d entries", mostArchive>>20, mostEntries)
		case errors.Is(err, io.EOF):
			return found.end(limited)
		case err != nil:
			return nil, unpacked(err)
		}
		if err := found.entry(entry, archive, &size); err != nil {
			return nil, unpacked(err)
		}
	}
}

// end reads the rest of an archive, whose checksum comes last.
func (f files) end(rest io.Reader) (files, error) {
	if _, err := io.Copy(io.Discard, rest); err != nil {
		return nil, unpacked(err)
	}
	return f.rooted()
}

var errEndsEarly = refuse(fetchAgain, "ends early")

// unpacked is why an archive cannot be unpacked.
func unpacked(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errEndsEarly
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, tar.ErrHeader):
		return refuse(fetchAgain, "is damaged: %v", err)
	default:
		return err
	}
}

// entry takes a file of an archive, and refuses what may name something outside of it.
func (f files) entry(entry *tar.Header, content io.Reader, size *int64) error {
	name := path.Clean(entry.Name)
	if path.IsAbs(name) || name == ".." || strings.HasPrefix(name, "../") || strings.Contains(entry.Name, `\`) {
		return refuse("pack it again with relative paths", "has a file with the path %q, which leaves the package", entry.Name)
	}
	switch entry.Typeflag {
	case tar.TypeDir, tar.TypeXGlobalHeader:
		return nil
	case tar.TypeReg:
	default:
		return refuse("pack files only", "has %q, which is a link or a device", entry.Name)
	}
	if strings.HasPrefix(path.Base(name), ".") {
		return nil // what systems add, such as ._operator.yaml
	}
	if _, twice := f[name]; twice {
		return refuse("pack it again", "has the file %q twice", name)
	}
	return f.add(name, content, size)
}

// rooted are the files of the folder that has an operator.yaml, as seen from there.
func (f files) rooted() (files, error) {
	root, err := f.root()
	if err != nil {
		return nil, err
	}
	found := files{}
	for name, content := range f {
		if below, ok := strings.CutPrefix(name, root); ok && isPart(below) {
			found[below] = content
		}
	}
	return found, nil
}

// root is the folder of the package. A template may be named operator.yaml too, and one that
// cannot be read may be that of a package.
func (f files) root() (string, error) {
	var packages, others []string
	for _, name := range slices.Sorted(maps.Keys(f)) {
		switch {
		case path.Base(name) != operatorFile:
		case isOperator(f[name]):
			packages = append(packages, name)
		case !strings.Contains("/"+name, "/"+templatesDir):
			others = append(others, name)
		}
	}
	if len(packages) == 0 {
		packages = others
	}
	switch len(packages) {
	case 0:
		return "", refuse("pack a package with: spillway package create DIR", "has no %s", operatorFile)
	case 1:
		return strings.TrimSuffix(packages[0], operatorFile), nil
	default:
		return "", refuse("pack the folder of one package", "has %d packages, want one: %s", len(packages), strings.Join(packages, ", "))
	}
}

// ArchiveName is the name of the archive of the package.
func (p *Package) ArchiveName() string {
	return p.Operator.Name + "-" + p.Operator.OperatorVersion + ".tgz"
}

// Archive writes the package as a .tgz. Of the same files it is the same to the byte.
func (p *Package) Archive(w io.Writer) error {
	zipped := gzip.NewWriter(w)
	archive := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		content := p.files[name]
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}
		if _, err := archive.Write(content); err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}
	}
	return errors.Join(archive.Close(), zipped.Close())
}
