// Words finds words that the project does not use in what people read: in comments,
// strings and identifiers of Go files, in Markdown, and in the text of tests. It prints
// each with the place and what to write instead, and fails if there is one.
//
// Usage: go run ./hack/words [FILE OR FOLDER...]
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

func main() {
	found, err := run(os.Args[1:])
	for _, f := range found {
		fmt.Println(f)
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	case len(found) > 0:
		fmt.Fprintf(os.Stderr, "words: %d to replace; hack/words/words.txt lists them\n", len(found))
		os.Exit(1)
	}
}

// run checks the files that git knows, below the given paths.
func run(paths []string) ([]string, error) {
	rules, err := parse(list)
	if err != nil {
		return nil, err
	}
	files, err := tracked(paths)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, name := range files {
		text, err := os.ReadFile(name) //nolint:gosec // git names it
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			return nil, fmt.Errorf("read a file: %w", err)
		}
		found = append(found, rules.check(name, text)...)
	}
	return found, nil
}

// tracked lists the files of the kinds that people read.
func tracked(paths []string) ([]string, error) {
	args := append([]string{"ls-files", "--cached", "--others", "--exclude-standard", "--"}, paths...)
	out, err := exec.Command("git", args...).Output() //nolint:gosec,noctx // what a developer types
	if err != nil {
		return nil, fmt.Errorf("list the files: %w", err)
	}
	var files []string
	for name := range strings.Lines(string(out)) {
		if name = strings.TrimSpace(name); isRead(name) {
			files = append(files, name)
		}
	}
	return files, nil
}

// isRead is true of the kinds of files that are checked. What is generated repeats its
// sources.
func isRead(name string) bool {
	if strings.Contains(name, "zz_generated") || strings.HasPrefix(name, "docs/man/") || strings.Contains(name, "/generated/") {
		return false
	}
	for _, end := range []string{".go", ".md", ".txtar", ".txt", ".sh", "Makefile", ".ci/run", ".golangci.yml"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return strings.HasPrefix(name, "examples/")
}
