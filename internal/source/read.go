package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Stdin is the path that stands for standard input, and the name under which
// documents from there are found.
const Stdin = "-"

// Read reads the manifests in files, in directories and all below them, and in
// standard input where a path is [Stdin]. Of a directory it takes the files that
// end in .yaml, .yml or .json, and leaves out what is hidden.
//
// The documents come in the order of the paths, of the names of files, and of the
// lines; what is named twice is read once. What could be read is returned also with
// an error; [Errors] takes that apart.
func Read(stdin io.Reader, paths ...string) ([]Document, error) {
	return ReadTree(stdin, Options{}, paths...)
}

// all reads the paths that a user names.
func (r *reader) all(paths []string) ([]Document, error) {
	for _, path := range paths {
		r.path(path)
	}
	if len(r.documents) == 0 && len(r.errs) == 0 && !r.owned {
		r.fail(strings.Join(paths, ", "), "there is no manifest", "manifests are objects of Kubernetes in files that end in .yaml, .yml or .json")
	}
	return r.documents, errors.Join(r.errs...)
}

type reader struct {
	Options

	stdin io.Reader
	// walking is true below a directory that was named, ignored is what is left out there.
	walking bool
	ignored *ignored
	// owned is true once a directory was left to the caller.
	owned bool
	// seen are the files that were read.
	seen      map[string]bool
	documents []Document
	errs      []error
}

func (r *reader) fail(file, problem, action string) {
	r.errs = append(r.errs, &Error{File: file, Problem: problem, Action: action})
}

// sentinel is a file that tells what a directory is.
type sentinel struct{ file, is, command string }

var sentinels = []sentinel{
	{"kustomization.yaml", "a Kustomize overlay", "kubectl kustomize"},
	{"kustomization.yml", "a Kustomize overlay", "kubectl kustomize"},
	{"Kustomization", "a Kustomize overlay", "kubectl kustomize"},
	{"Chart.yaml", "a Helm chart", "helm template"},
}

func (r *reader) file(path string) {
	i := slices.IndexFunc(sentinels, func(s sentinel) bool { return s.file == filepath.Base(path) })
	if i >= 0 {
		r.unrendered(filepath.Dir(path), sentinels[i])
		return
	}
	r.read(path, func() ([]byte, error) { return os.ReadFile(path) }) //nolint:gosec // the user names what is read
}

func (r *reader) path(path string) {
	if path == Stdin {
		r.read(Stdin, func() ([]byte, error) { return io.ReadAll(r.stdin) })
		return
	}
	info, err := os.Stat(path)
	switch {
	case err != nil && strings.Contains(path, "://"):
		r.fail(path, "is an address, and nothing is downloaded here", "download it first, with \"curl -fsSL "+path+"\", and pipe that to -f -")
	case err != nil:
		r.unreadable(path, err)
	case info.IsDir():
		r.directory(path)
	default:
		r.file(path)
	}
}

// directory reads what is in and below a directory. A link to a directory is not
// followed, so that no circle of them is walked.
func (r *reader) directory(root string) {
	r.walking, r.ignored = true, &ignored{}
	if r.Skip != nil || len(r.Exclude) > 0 {
		r.ignored = newIgnored(root, r.Exclude)
	}
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			r.unreadable(path, err)
			return fs.SkipDir
		case path != root && r.isLeftOut(path, entry):
			if entry.IsDir() {
				return fs.SkipDir
			}
		case entry.IsDir() && path != root && r.Own != nil && r.Own(path):
			r.owned = true
			return fs.SkipDir
		case entry.IsDir():
			return r.enter(root, path)
		case isManifest(entry.Name()) && !leadsToDirectory(path, entry):
			r.file(path)
		}
		return nil
	})
	r.walking = false
}

func (r *reader) isLeftOut(path string, entry fs.DirEntry) bool {
	return entry.IsDir() && isHidden(entry.Name()) || r.ignored.has(path, entry.IsDir())
}

// enter refuses a directory that must be rendered before it is a manifest. One that was not
// named is left out of a repository.
func (r *reader) enter(root, path string) error {
	for _, s := range sentinels {
		if _, err := os.Stat(filepath.Join(path, s.file)); err != nil {
			continue
		}
		if r.Skip != nil && path != root {
			r.Skip(Skipped{Path: path, Why: s.is, Action: s.command + " " + path})
		} else {
			r.unrendered(path, s)
		}
		return fs.SkipDir
	}
	if r.Skip != nil {
		r.ignored.enter(path)
	}
	return nil
}

func (r *reader) unrendered(path string, s sentinel) {
	r.fail(path, "is "+s.is+", which is not rendered here",
		fmt.Sprintf("render it first, and pipe that to -f -: %s %s", s.command, path))
}

func isManifest(name string) bool {
	return !isHidden(name) && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
}

func isHidden(name string) bool { return strings.HasPrefix(name, ".") }

func leadsToDirectory(path string, entry fs.DirEntry) bool {
	if entry.Type()&fs.ModeSymlink == 0 {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (r *reader) read(file string, content func() ([]byte, error)) {
	if r.seen[filepath.Clean(file)] {
		return
	}
	r.seen[filepath.Clean(file)] = true
	raw, err := content()
	if err != nil {
		r.unreadable(file, err)
		return
	}
	if !isText(raw) {
		r.notText(file)
		return
	}
	documents, errs := r.parse(file, raw)
	r.documents = append(r.documents, documents...)
	r.errs = append(r.errs, errs...)
}

// notText leaves out a file that is not text, unless a user has named it.
func (r *reader) notText(file string) {
	if r.walking && r.NotText != nil {
		r.NotText(file)
		return
	}
	r.fail(file, "is not text", "name a manifest, in YAML or JSON")
}

// unreadable says why the system cannot read a path, without naming it twice.
func (r *reader) unreadable(path string, err error) {
	cause := err
	if named, ok := errors.AsType[*fs.PathError](err); ok {
		cause = named.Err
	}
	r.errs = append(r.errs, &Error{
		File: path, Problem: "cannot be read: " + cause.Error(), Action: "give a file or directory that exists and can be read, or - for standard input", cause: err,
	})
}

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

// ignoreFiles are those that say, as git does, which files are none of ours. A later one
// wins.
var ignoreFiles = []string{".gitignore", ".spillwayignore"}

// ignored are the patterns of what is left out below a directory. Paths are those below
// the root of the file system, as the patterns of the directories above count as well.
type ignored struct{ patterns []gitignore.Pattern }

// newIgnored reads what the directories above root say, up to the one that is a repository
// of git. Patterns that were given are relative to root.
func newIgnored(root string, given []string) *ignored {
	i := &ignored{}
	for _, dir := range parents(root) {
		i.enter(dir)
	}
	for _, pattern := range given {
		i.patterns = append(i.patterns, gitignore.ParsePattern(pattern, parts(root)))
	}
	return i
}

// parents are the directories above one in its repository, the outermost first; none
// where there is no repository.
func parents(dir string) []string {
	dir = absolute(dir)
	var above []string
	for !isRepository(dir) {
		up := filepath.Dir(dir)
		if up == dir {
			return nil
		}
		above, dir = append([]string{up}, above...), up
	}
	return above
}

func isRepository(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, ".git"))
	return err == nil
}

// enter reads what a directory says of what is below it. What cannot be read says nothing.
func (i *ignored) enter(dir string) {
	for _, name := range ignoreFiles {
		raw, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // below what the user names
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(raw)) {
			if line = strings.TrimRight(line, "\r\n"); strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
				i.patterns = append(i.patterns, gitignore.ParsePattern(line, parts(dir)))
			}
		}
	}
}

// has is true of a file or directory that is left out.
func (i *ignored) has(path string, isDir bool) bool {
	return len(i.patterns) > 0 && gitignore.NewMatcher(i.patterns).Match(parts(path), isDir)
}

// parts are the names in a path from the root of the file system.
func parts(path string) []string {
	return strings.Split(strings.Trim(filepath.ToSlash(absolute(path)), "/"), "/")
}

func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}
