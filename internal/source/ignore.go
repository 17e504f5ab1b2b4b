package source

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

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
