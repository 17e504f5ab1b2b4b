package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
