package repository

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spillway-dev/spillway/internal/packages"
)

// IndexOf is the index of the archives in a directory, served from an address. It has no
// time in it: of the same archives it is the same to the byte.
func IndexOf(dir, served string) (*Index, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", dir, err)
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s not found; name the directory with the archives", dir)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s has no archives (.tgz); write them with: spillway package create DIR -d %s", dir, dir)
	}
	index := &Index{APIVersion: indexVersion, Entries: map[string]Entries{}}
	for _, path := range paths {
		entry, err := entryOf(path, served)
		if err != nil {
			return nil, err
		}
		if err := index.add(entry); err != nil {
			return nil, err
		}
	}
	return index, nil
}

func entryOf(path, served string) (Entry, error) {
	raw, err := readBounded(path)
	if err != nil {
		return Entry{}, err
	}
	p, err := packages.Read(path, bytes.NewReader(raw))
	if err != nil {
		return Entry{}, err
	}
	o := &p.Operator
	return Entry{
		APIVersion: o.APIVersion, AppVersion: o.AppVersion, Digest: digestOf(raw), Maintainers: o.Maintainers,
		Name: o.Name, Description: o.Description, OperatorVersion: o.OperatorVersion,
		URLs: []string{strings.TrimSuffix(served, "/") + "/" + filepath.Base(path)},
	}, nil
}

func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path) //nolint:gosec // the user names what is read
	if err != nil {
		return nil, fmt.Errorf("read a file of packages: %w", err)
	}
	raw, err := bounded(file, path)
	return raw, errors.Join(err, file.Close())
}

// digestOf is the SHA-256 of an archive as an index has it.
func digestOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
