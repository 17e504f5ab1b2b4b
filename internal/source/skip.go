package source

import (
	"bytes"
	"io"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Skipped is something below a directory that is no manifest, and was left out.
type Skipped struct {
	// Path is the file or directory.
	Path string
	// Why says what it is, such as "a Helm chart", and Action how it can be read all the same,
	// empty if that is of no use.
	Why, Action string
}

// Options say how directories are read. What a user names is read in any case.
type Options struct {
	// Exclude are patterns as in a .gitignore, relative to each directory that is named.
	Exclude []string
	// Skip, if it is not nil, is called with what is left out because it is no manifest. The
	// directories are then read as repositories, which hold many other files: what .gitignore
	// and .spillwayignore say is left out too. Nil takes anything else for a mistake.
	Skip func(Skipped)
	// Own, if it is not nil, reports whether the caller reads a directory below one that is named
	// itself. It is then left out.
	Own func(directory string) bool
	// NotText, if it is not nil, is called with the files below a directory that are named as
	// manifests and are not text, which are left out.
	NotText func(path string)
}

// isText is false of what no manifest is: it has zero bytes, which only UTF-16 has in a text.
func isText(raw []byte) bool {
	isWide := bytes.HasPrefix(raw, []byte{0xff, 0xfe}) || bytes.HasPrefix(raw, []byte{0xfe, 0xff})
	return isWide || !bytes.Contains(raw, []byte{0})
}

// ReadTree reads as [Read] does, by the options.
func ReadTree(stdin io.Reader, o Options, paths ...string) ([]Document, error) {
	return (&reader{Options: o, stdin: stdin, seen: map[string]bool{}}).all(paths)
}

// says is a line by which a text says that it is an object of Kubernetes.
var says = regexp.MustCompile(`(?m)^\s*"?(apiVersion|kind)"?\s*:`)

// isOther is true of a text that is no manifest: nothing in it says what it is, or it is a
// template, from which manifests are made.
func isOther(text []byte) bool {
	return bytes.Contains(text, []byte("{{")) || len(says.FindAll(text, 2)) < 2
}

// isNoObject is true of a document that no API server stores: it does not say what it is,
// or it is the configuration of some program, which has a kind and no name.
func isNoObject(u *unstructured.Unstructured) bool {
	version, kind := u.Object["apiVersion"], u.Object["kind"]
	if version == nil && kind == nil {
		return true
	}
	group := schema.FromAPIVersionAndKind(u.GetAPIVersion(), u.GetKind()).Group
	isKubeconfig := group == "" && kind == "Config"
	return u.Object["metadata"] == nil && (strings.Contains(group, ".") || isKubeconfig)
}
