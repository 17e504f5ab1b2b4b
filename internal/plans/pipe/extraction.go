package pipe

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"path"
	"slices"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// Container is the container in a Pipe's Pod in which files are read.
	Container = "spillway-pipe"
	// MaxFile is how long a file of a Pipe may be, in bytes.
	MaxFile = 1 << 20
)

// Extraction is what to read of a Pod.
type Extraction struct {
	// Container is the one to read in.
	Container string
	Files     []File
}

// File is a file, and the object that keeps it; see [File.Keep].
type File struct {
	// Path is absolute, in the container.
	Path string
	// Env is true of a file of lines KEY=VALUE, each of which becomes a key.
	Env bool
	// Object is applied with what was read.
	Object *unstructured.Unstructured
}

// Keep is the object that keeps the file, with its content.
func (e File) Keep(content []byte) (*unstructured.Unstructured, error) {
	if len(content) > MaxFile {
		return nil, fmt.Errorf("file %s is longer than %d bytes", e.Path, MaxFile)
	}
	data := map[string][]byte{path.Base(e.Path): content}
	if e.Env {
		var err error
		if data, err = lines(content); err != nil {
			return nil, fmt.Errorf("file %s: %w", e.Path, err)
		}
	}
	u := e.Object.DeepCopy()
	for key, value := range data {
		keep(u, key, value)
	}
	return u, nil
}

func keep(u *unstructured.Unstructured, key string, value []byte) {
	field, text := "data", string(value)
	switch {
	case u.GetKind() == "Secret":
		text = base64.StdEncoding.EncodeToString(value)
	case !utf8.Valid(value):
		field, text = "binaryData", base64.StdEncoding.EncodeToString(value)
	}
	_ = unstructured.SetNestedField(u.Object, text, field, key) // the maps are made here
}

// lines parses a file of lines KEY=VALUE.
func lines(content []byte) (map[string][]byte, error) {
	data := map[string][]byte{}
	scanner := bufio.NewScanner(bytes.NewReader(content))
	scanner.Buffer(nil, MaxFile+1)
	for number := 1; scanner.Scan(); number++ {
		line := bytes.TrimLeftFunc(bytes.TrimPrefix(scanner.Bytes(), []byte("\ufeff")), unicode.IsSpace)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		key, value, ok := bytes.Cut(line, []byte("="))
		if !ok {
			return nil, fmt.Errorf("line %d: must be KEY=VALUE", number)
		}
		data[string(bytes.TrimSpace(key))] = slices.Clone(value)
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("read it: %w", err)
	}
	return data, nil
}
